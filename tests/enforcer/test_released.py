"""A release gives every container the whole machine back, until it is ended."""

from enforcer.cli.status import ask
from standins.patience import PATIENCE_S, until
from standins.runtime.runtime import Runtime
from tests.enforcer.command import command
from tests.enforcer.running import GROUP, Enforcer, cpus, numa_cpus


def test_release_gives_every_container_the_whole_machine_back(enforcer: Enforcer, runtime: Runtime) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
    output = command("release", "--run-dir", str(enforcer.run_dir))
    assert output.returncode == 0
    assert output.stdout == "released 1 containers; nothing is pinned until `numakin-enforcer resume`\n"
    assert str(cpus(runtime, made)) == "0-159"
    later = runtime.run_container(runtime.run_pod("later", annotations=GROUP), "app", cpu_request=2)
    assert not cpus(runtime, later)
    shown = {container["id"]: container for container in enforcer.status()["containers"]}
    for container in (made, later):
        assert shown[container.id]["reasons"] == ["released: nothing is pinned until `numakin-enforcer resume`"]
        assert (shown[container.id]["numa_nodes"], shown[container.id]["cpus"]) == ("", "")


def test_a_release_lasts_over_restarts_of_either_until_it_is_ended(enforcer: Enforcer, runtime: Runtime) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
    assert ask(enforcer.run_dir, "release")["released"] == 1
    runtime.stop()
    until(enforcer.parted, "the runtime is missed")
    runtime.start()
    until(enforcer.joined, "it is back")
    assert str(cpus(runtime, made)) == "0-159"
    enforcer.kill_hook()
    until(enforcer.joined, "it is back")
    later = runtime.run_container(runtime.run_pod("later", annotations=GROUP), "app", cpu_request=2)
    assert (str(cpus(runtime, made)), str(cpus(runtime, later))) == ("0-159", "")
    assert enforcer.status()["released"]
    output = command("resume", "--run-dir", str(enforcer.run_dir))
    assert output.returncode == 0
    assert output.stdout == "resumed: containers are pinned again\n"
    until(lambda: cpus(runtime, made) == cpus(runtime, later) == numa_cpus(enforcer)[0], "they are pinned again")
