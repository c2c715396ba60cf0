"""A release gives every container the whole machine back, until it is ended."""

import threading
from collections.abc import Iterator

import pytest

from enforcer.cli.status import ask
from lab.standins.cri.cgroups import Cgroups
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from tests.enforcer.command import command
from tests.enforcer.running import GROUP, PLAYED, Enforcer, cpus, numa_cpus


@pytest.fixture
def cgroups(enforcer: Enforcer) -> Cgroups:
    return Cgroups(enforcer.folder, "0-159", "0-1")


@pytest.fixture(params=["NRI 0.8.0", "CRI-O"])
def runtime(request: pytest.FixtureRequest, enforcer: Enforcer, cgroups: Cgroups) -> Iterator[Runtime]:
    with Runtime(enforcer.socket, **PLAYED[request.param], cgroups=cgroups) as made:
        enforcer.start("--procfs", str(cgroups.procfs))
        made.wait_for_plugin(PATIENCE_S)
        yield made


def released(enforcer: Enforcer) -> tuple[int, str, str]:
    ran = command("release", "--run-dir", str(enforcer.run_dir))
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize("runtime", PLAYED, indirect=True)
def test_release_gives_every_container_the_whole_machine_back(enforcer: Enforcer, runtime: Runtime) -> None:
    """An older runtime by the answer to Synchronize: an update out of turn might hang it."""
    made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
    stranger = runtime.run_container(runtime.run_pod("stranger"), "app", cpu_request=2)
    said = "released 1 containers; nothing is pinned until `numakin-enforcer resume`\n"
    assert released(enforcer) == (0, said, "")
    assert str(cpus(runtime, made)) == "0-159"
    assert not cpus(runtime, stranger)
    until(enforcer.joined, "it is registered")
    later = runtime.run_container(runtime.run_pod("later", annotations=GROUP), "app", cpu_request=2)
    assert not cpus(runtime, later)
    shown = {container["id"]: container for container in enforcer.status()["containers"]}
    for container in (made, later):
        assert shown[container.id]["reasons"] == ["released: nothing is pinned until `numakin-enforcer resume`"]
        assert (shown[container.id]["numa_nodes"], shown[container.id]["cpus"]) == ("", "")
    assert runtime.unsolicited == (runtime.nri_version == "0.12.1")


def test_release_beside_pods_that_start_hangs_no_runtime(enforcer: Enforcer, runtime: Runtime) -> None:
    """An update out of turn meets an event: each has one of the runtime's two locks, and waits for the other for good."""
    made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
    said = list[tuple[int, str, str]]()
    asking = threading.Thread(target=lambda: said.append(released(enforcer)))
    with runtime.busy():
        asking.start()
        until(lambda: enforcer.status()["released"], "the hook is asked")
        for number in range(3):
            runtime.run_container(runtime.run_pod(f"p{number}"), "app")
    asking.join(PATIENCE_S)
    assert not runtime.hung
    assert said[0][0] == 0, said
    assert str(cpus(runtime, made)) == "0-159"


def test_a_container_that_is_being_created_meanwhile_is_not_left_pinned(enforcer: Enforcer, runtime: Runtime) -> None:
    """The runtime lists it nowhere yet, and starts it with what it was given at its creation."""
    made = runtime.create_container(
        runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2, meanwhile=lambda: released(enforcer)
    )
    until(enforcer.joined, "it is registered")
    assert cpus(runtime, made) == numa_cpus(enforcer)[0]
    runtime.start_container(made)
    runtime.run_container(runtime.run_pod("next"), "app")  # an answer that may have it
    assert str(cpus(runtime, made)) == "0-159"


@pytest.mark.parametrize("runtime", ["NRI 0.12.1"], indirect=True)
def test_who_is_not_released_is_named(enforcer: Enforcer, runtime: Runtime) -> None:
    """The kernel refuses, as where another cgroup is in the way."""
    web = runtime.run_pod("m", annotations=GROUP)
    free, stuck = (runtime.run_container(web, name, cpu_request=2) for name in ("free", "stuck"))
    runtime.refused.add(stuck.id)
    code, out, err = released(enforcer)
    assert code == 1
    assert out.startswith("released 1 containers; ")
    home = numa_cpus(enforcer)[0]
    assert err == (
        f"NOT released: default/m stuck ({stuck.id[:12]}) is on {home}\n"
        "numakin-enforcer: not carried out: NRI update of some containers failed\n"
    )
    assert str(cpus(runtime, free)) == "0-159"


def test_without_a_runtime_nothing_is_called_released(enforcer: Enforcer, runtime: Runtime) -> None:
    runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
    runtime.stop()
    until(enforcer.parted, "the runtime is missed")
    code, out, err = released(enforcer)
    assert (code, out.startswith("released 0 containers")) == (1, True)
    assert "the runtime does not have us registered: it is carried out as soon as it has" in err
    runtime.start()
    until(lambda: str(cpus(runtime, *runtime.containers.values())) == "0-159", "it is carried out")


def test_a_release_lasts_over_restarts_of_either_until_it_is_ended(enforcer: Enforcer, runtime: Runtime) -> None:
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
