"""What the doctor finds in what the running enforcer has met: each with what it means and what to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from enforcer.cli import doctor
from enforcer.cli.findings import Finding
from enforcer.cli.status import NobodyAnswersError
from enforcer.settings.config import Config

YIELDED = {"containers": 0, "members": 1, "conflicts": 0, "powerless": False}
STATUS = "numakin-enforcer status"


def container(name: str = "cart", state: str = "pinned", **more: object) -> dict[str, Any]:
    row = {"pod": f"shop/{name}", "container": "app", "group": "shop/web", "state": state, "let_out": ""}
    return row | {"found_cpus": "", "found_mems": ""} | more


def met(*containers: dict[str, Any], **more: object) -> dict[str, Any]:
    return {
        "registered": True, "released": False, "not_written_down": "", "hot": [], "conflicts": [], "yielded": YIELDED,
        "observer": {"seconds_ago": 1.0, "degraded": "", "doing": ""}, "containers": [*containers] or [container()],
    } | more  # fmt: skip


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The findings about the running enforcer, its members and other owners; no other owner's process is there."""

    def examine(answer: dict[str, Any] | Exception) -> list[Finding]:
        def ask(_run_dir: Path) -> dict[str, Any]:
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(doctor, "ask", ask)
        config = Config(procfs=str(tmp_path))
        return [*doctor._enforcer(config), *doctor._cpusets(config)]

    return examine


def test_where_all_is_well_it_says_how_much_that_is(found) -> None:
    assert [(entry.topic, entry.grade, entry.text) for entry in found(met())] == [
        ("enforcer", "good", "it runs and is registered: 1 container of 1 pod in 1 group: 1 pinned"),
        ("cpusets", "good", "no process is known to set any besides numakin, and none was met"),
    ]


NOT_WELL = {
    "a release": (met(released=True), "bad", "nothing is pinned", "numakin-enforcer resume"),
    "no registration": (met(registered=False), "bad", "not registered with the container runtime", "journalctl"),
    "a full disk": (met(not_written_down="No space left"), "bad", "a restart may not know them", "df -h"),
    "a silent observer": (met(observer={"seconds_ago": 99.0}), "bad", "was silent for 99 s", STATUS),
    "an observer that never lived": (met(observer={}), "note", "no sign of life yet", STATUS),
    "a degraded observer": (
        met(observer={"seconds_ago": 1.0, "degraded": "traffic: no such file"}), "note", "is degraded: traffic", STATUS,
    ),
    "a cgroup that differs": (
        met(container(found_cpus="0-79")), "bad", "shop/cart app: the cgroup has another cpuset", STATUS,
    ),
    "one that has not opted in and differs": (
        met(container(state="not opted in", found_cpus="0-79")), "bad", "not exclusive", STATUS,
    ),
    "a refused cpuset": (met(container(state="refused")), "bad", "the kernel refused the cpuset", STATUS),
    "one that fits nowhere": (met(container(state="left open")), "note", "lower its requests, or make room", STATUS),
    "a hot NUMA node": (
        met(container(let_out="1"), hot=["0-39"]), "note", "and 1 containers are let out", f"{STATUS} --all",
    ),
    "a conflict": (
        met(conflicts=["shop/Deployment/web app"]), "bad", "give it an index below 99", STATUS,
    ),
    "a part with another owner": (
        met(yielded=YIELDED | {"containers": 1, "members": 3}), "note", "1 of 3 containers that opted in", STATUS,
    ),
    "half with another owner": (
        met(yielded=YIELDED | {"containers": 1, "members": 2}), "bad", "the extender scores this node 0", STATUS,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "grade", "text", "command"), NOT_WELL.values(), ids=NOT_WELL)
def test_what_is_not_well_is_found_with_what_it_means_and_what_to_run(found, answer, grade, text, command) -> None:
    (entry,) = [entry for entry in found(answer) if entry.grade != "good"]
    assert (entry.grade, text in entry.text, entry.command.startswith(command)) == (grade, True, True), entry


def test_where_a_cgroup_differs_nobody_is_cleared_of_having_written_it(found) -> None:
    assert [entry.grade for entry in found(met(container(found_cpus="0-79"))) if entry.topic == "cpusets"] == ["bad"]


def test_of_many_containers_some_are_named_and_the_others_counted(found) -> None:
    nowhere = found(met(*(container(f"cart-{number}", "left open") for number in range(9))))
    assert any("shop/cart-0 app, shop/cart-1 app, shop/cart-2 app and 6 more: left open" in one.text for one in nowhere)


def test_what_nobody_answers_about_is_not_called_well(found) -> None:
    unknown, cpusets = found(NobodyAnswersError("no enforcer answers at /run/numakin/hook.sock: gone"))
    assert (unknown.grade, "what it has met is not known" in unknown.text) == ("note", True)
    assert "none was met" not in cpusets.text


def test_the_command_names_a_run_folder_of_its_own(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(doctor, "ask", lambda _: met(released=True))
    config = Config(procfs=str(tmp_path), run_dir="/run/other")
    assert "numakin-enforcer resume --run-dir /run/other" in [entry.command for entry in doctor._enforcer(config)]


def test_the_worst_is_printed_first_with_its_command_below(monkeypatch, capsys) -> None:
    findings = [
        Finding("NRI", "good", "all right"), Finding("NUMA", "note", "one node"), Finding("kubelet", "bad", "no", "ls"),
    ]  # fmt: skip
    monkeypatch.setattr(doctor, "examine", lambda _: findings)
    assert doctor.doctor(Config(), as_json=False) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["bad", "$", "note", "ok"]
    assert lines[1] == f"{'':14}$ ls"
