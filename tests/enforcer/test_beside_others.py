"""Beside other owners of cpusets: the program itself, with a runtime at the other end that speaks NRI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from enforcer.nri.handlers import Handlers
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime import CriError, Runtime
from numakin.wire import nri_pb2 as nri
from tests.enforcer.command import command
from tests.enforcer.nri.running import Running
from tests.enforcer.running import GROUP, PLAYED, Enforcer


def doctor(enforcer: Enforcer, topic: str, socket: Path | None = None) -> list[tuple[str, str]]:
    """Its findings on a topic."""
    where = ("--run-dir", str(enforcer.run_dir), "--nri-socket", str(socket or enforcer.socket))
    where += ("--sysfs", str(enforcer.sysfs))
    findings = json.loads(command("doctor", "--json", *where).stdout)
    return [(finding["grade"], finding["text"]) for finding in findings if finding["topic"] == topic]


@pytest.mark.parametrize(("placed", "grade"), [(1, "bad"), (2, "note")], ids=["half are another's", "a third is"])
def test_how_much_other_owners_have_is_told_by_status_metrics_and_the_doctor(
    enforcer: Enforcer, runtime: Runtime, placed: int, grade: str
) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    runtime.run_container(runtime.run_pod("theirs", annotations=GROUP), "app", cpu_request=2, cpus="0-3")
    for number in range(placed):
        runtime.run_container(runtime.run_pod(f"m{number}", annotations=GROUP), "app", cpu_request=2)
    counted = {"containers": 1, "members": placed + 1, "conflicts": 0, "powerless": grade == "bad"}
    until(lambda: enforcer.status()["yielded"] == counted, "it to be counted")
    until(lambda: enforcer.metric("numakin_enforcer_yielded_containers") == 1, "the observer to know it")
    assert enforcer.metric("numakin_enforcer_powerless") == (grade == "bad")
    ((found, text),) = doctor(enforcer, "cpusets")
    assert found == grade
    assert text.startswith(f"1 of {placed + 1} containers that opted in have their cpuset set by another owner")


def test_the_doctor_finds_that_a_runtime_listens_without_being_a_plugin(enforcer: Enforcer, runtime: Runtime) -> None:
    """A connection that does not register is an error in the runtime's log, and others wait for it meanwhile."""
    assert doctor(enforcer, "NRI") == [("good", f"the container runtime listens at {enforcer.socket}")]
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)  # connections are taken in their order
    assert runtime.plugins.notes == ["plugin 99-numakin is synchronized"]


def test_the_doctor_finds_that_nobody_listens_at_a_socket_that_is_there(enforcer: Enforcer) -> None:
    left = enforcer.folder / "left.sock"
    with Runtime(left):
        pass
    ((grade, text),) = doctor(enforcer, "NRI", left)
    assert (grade, text.partition(":")[0]) == ("bad", f"no process listens at {left}")


@pytest.mark.parametrize("played", [PLAYED["NRI 0.8.0"], PLAYED["CRI-O"]], ids=["containerd", "CRI-O"])
def test_a_plugin_that_is_asked_later_costs_one_try_and_is_named_from_then_on(
    enforcer: Enforcer, played: dict[str, str]
) -> None:
    """containerd takes a failed creation back towards plugins, CRI-O does not."""
    pins = nri.ContainerAdjustment()
    pins.linux.resources.cpu.cpus = "0-3"
    later = Handlers(create_container=lambda _pod, _container: (pins, ()))
    replicas = {"pod-template-hash": "6d4cf"}
    with Runtime(enforcer.socket, **played) as runtime:
        enforcer.start("--plugin-index", "10")
        runtime.wait_for_plugin(PATIENCE_S)
        with Running(enforcer.socket, later, index="90"):
            runtime.wait_for_plugin(PATIENCE_S)
            first, second = (runtime.run_pod(f"web-6d4cf-{at}", annotations=GROUP, labels=replicas) for at in "ab")
            with pytest.raises(CriError, match="both tried to set CPU pinning"):
                runtime.run_container(first, "app", cpu_request=2)
            assert runtime.run_container(first, "app", cpu_request=2).cpus == "0-3"
            assert runtime.run_container(second, "app", cpu_request=2).cpus == "0-3", "no try is lost"
    assert enforcer.status()["conflicts"] == ["default/Deployment/web app"]
    assert enforcer.status()["yielded"] == {"containers": 2, "members": 2, "conflicts": 2, "powerless": True}
    until(lambda: enforcer.metric("numakin_enforcer_placements_total", result="conflict") == 2, "it to be counted")
    assert enforcer.metric("numakin_enforcer_never_created_total") == 1
    (*_, (grade, text)) = doctor(enforcer, "cpusets")
    assert (grade, "2 of them by an NRI plugin that is asked later" in text) == ("bad", True)
