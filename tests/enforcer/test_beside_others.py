"""Beside other owners of cpusets: the program itself, with a runtime at the other end that speaks NRI."""

from __future__ import annotations

import json

import pytest

from standins.patience import PATIENCE_S, until
from standins.runtime.runtime import Runtime
from tests.enforcer.command import command
from tests.enforcer.running import GROUP, Enforcer


def doctor(enforcer: Enforcer, topic: str) -> list[tuple[str, str]]:
    """Its findings on a topic."""
    where = ("--run-dir", str(enforcer.run_dir), "--nri-socket", str(enforcer.socket), "--sysfs", str(enforcer.sysfs))
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
    with Runtime(enforcer.socket):
        pass
    ((grade, text),) = doctor(enforcer, "NRI")
    assert (grade, text.partition(":")[0]) == ("bad", f"nobody listens at {enforcer.socket}")
