"""A container that can't start ("exec not found") is tried again and again, and takes no more CPUs for it."""

from collections.abc import Iterator

import pytest

from lab.standins.patience import until
from lab.standins.runtime import CriError, Runtime
from tests.enforcer.running import GROUP, PLAYED, Enforcer, cpus, numa_cpus


@pytest.fixture(params=["NRI 0.8.0", "CRI-O"])
def runtime(request: pytest.FixtureRequest, enforcer: Enforcer) -> Iterator[Runtime]:
    with Runtime(enforcer.socket, **PLAYED[request.param]) as made:
        yield made


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


def test_the_cpus_of_a_container_that_ends_by_itself_are_free_for_others_at_once(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    enforcer.start()
    runtime.wait_for_plugin()
    neighbour = runtime.run_container(runtime.run_pod("n", annotations=GROUP), "app", cpu_request=1)
    wide = cpus(runtime, neighbour)
    own = GROUP | {"cpus.numakin.io": "exclusive"}
    container = runtime.run_container(runtime.run_pod("own", annotations=own), "app", cpu_request=30)
    assert cpus(runtime, neighbour) == wide - cpus(runtime, container)
    runtime.end_container(container)
    assert cpus(runtime, neighbour) == wide


def test_a_creation_that_fails_for_another_reason_is_no_conflict_and_the_next_is_pinned(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    """CRI-O fails the creation of a container whose program is not there, where containerd fails its start."""
    enforcer.start()
    runtime.wait_for_plugin()
    pod = runtime.run_pod("web", annotations=GROUP)
    with pytest.raises(CriError, match="no such file"):
        runtime.create_container(pod, "app", cpu_request=2, fails="exec: /nowhere: no such file or directory")
    container = runtime.run_container(pod, "app", cpu_request=2)
    runtime.run_pod("next")  # whose answer may have updates where the start's has none
    runtime.stop_container(runtime.run_container(runtime.run_pod("short", annotations=GROUP), "app", cpu_request=1))
    until(lambda: cpus(runtime, container) in numa_cpus(enforcer), "it to be pinned")
    assert enforcer.status()["conflicts"] == []
    assert enforcer.status()["yielded"]["conflicts"] == 0
