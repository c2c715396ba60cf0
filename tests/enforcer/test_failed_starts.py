"""A container that can't start ("exec not found") is tried again and again, and takes no more CPUs for it."""

from lab.standins.runtime.runtime import Runtime
from tests.enforcer.running import GROUP, Enforcer, cpus


def test_a_container_that_starts_at_the_fourth_attempt_has_exclusive_cpus_and_nobody_else_lacks_any(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    """RemoveContainer of the failed ones comes minutes later."""
    enforcer.start()
    runtime.wait_for_plugin()
    neighbour = runtime.run_container(runtime.run_pod("n", annotations=GROUP), "app", cpu_request=1)
    wide = cpus(runtime, neighbour)
    pod = runtime.run_pod("own", annotations={**GROUP, "cpus.numakin.io": "exclusive"})
    failed = [runtime.fail_start(runtime.create_container(pod, "app", cpu_request=30)) for _ in range(3)]
    own = runtime.run_container(pod, "app", cpu_request=30)
    assert len(cpus(runtime, own)) == 30
    assert cpus(runtime, neighbour) == wide - cpus(runtime, own)
    for container in failed:
        runtime.remove_container(container)
    assert len(cpus(runtime, own)) == 30
    assert {container["id"] for container in enforcer.status()["containers"]} == {neighbour.id, own.id}
