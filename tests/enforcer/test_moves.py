"""Running members that talk and were started apart, in the real program by the operator's options: recorded traffic is
replayed in windows of a second.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from enforcer.observer.moves.candidates import REST
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.placement.traffic.graph import Flow
from numakin.placement.traffic.window import Window
from tests.enforcer.command import command
from tests.enforcer.occupied import occupied
from tests.enforcer.running import Enforcer, cpus

AUTO = {"group.numakin.io": "auto"}


@contextmanager
def apart(
    enforcer: Enforcer, *options: str, annotations: Mapping[str, dict[str, str]] = MappingProxyType({})
) -> Iterator[tuple[Runtime, list]]:
    """A runtime with db and web, each on a NUMA node of its own. annotations: by pod, beside its group's."""
    flows = (Flow("uid-web", "uid-db", "tcp", 50_000, 500), Flow("uid-db", "uid-web", "tcp", 90_000, 500))
    recording = enforcer.folder / "recording"
    recording.write_text("".join(Window(1.0, flows).to_json() + "\n" for _ in range(3)))
    with Runtime(enforcer.socket, nri_version="0.12.1") as runtime:
        enforcer.start("--replay", str(recording), "--window-s", "1", *options)
        runtime.wait_for_plugin(PATIENCE_S)
        members = [
            runtime.run_container(
                runtime.run_pod(name, "ns", f"uid-{name}", AUTO | annotations.get(name, {})), "app", cpu_request=2
            )
            for name in ("db", "web")
        ]
        assert cpus(runtime, members[0]) != cpus(runtime, members[1])
        yield runtime, members


def test_a_planned_move_is_told_and_not_made(enforcer: Enforcer) -> None:
    with apart(enforcer, "--moves", "plan") as (runtime, members):
        before = [cpus(runtime, member) for member in members]
        until(lambda: enforcer.metric("numakin_enforcer_moves_planned_total") == 1, "the move is told")
        (planned,) = enforcer.status()["planned_moves"]
        assert planned["pod"] in ("ns/web", "ns/db")
        assert {planned["source"], planned["target"]} == {"NUMA node 0", "NUMA node 1"}
        shown = command("status", "--run-dir", str(enforcer.run_dir)).stdout
        assert f"planned and not made: {planned['pod']} from {planned['source']} to {planned['target']}: " in shown
        assert [cpus(runtime, member) for member in members] == before
        assert enforcer.metric("numakin_enforcer_moves_total", result="made") == 0
    process = enforcer.processes[-1]
    process.terminate()
    process.wait(PATIENCE_S)
    assert enforcer.log.read_text().count("a move is planned") == 1


def windows(enforcer: Enforcer) -> int:
    """How many were learned from."""
    status, page = enforcer.get("/api/v1/windows")
    return max((window["number"] for window in json.loads(page)["windows"]), default=0) if status == 200 else 0


def from_now(begin_h: int, end_h: int) -> str:
    hour = datetime.now(UTC).hour
    return f"{(hour + begin_h) % 24:02}:00-{(hour + end_h) % 24:02}:00"


def test_outside_its_hours_nobody_is_moved(enforcer: Enforcer) -> None:
    """Learning goes on: several times as many windows are seen as a move needs."""
    hours = from_now(2, 4)
    with apart(enforcer, "--move-hours", hours) as (runtime, members):
        before = [cpus(runtime, member) for member in members]
        until(lambda: windows(enforcer) > 3 * REST, "windows are seen")
        assert [cpus(runtime, member) for member in members] == before
        assert enforcer.metric("numakin_enforcer_moves_total", result="made") == 0
        shown = command("status", "--run-dir", str(enforcer.run_dir)).stdout
        assert f"running members are moved at {hours} UTC alone: not now" in " ".join(shown.split())


def test_in_its_hours_members_are_moved(enforcer: Enforcer) -> None:
    with apart(enforcer, "--move-hours", from_now(-2, 3)) as (runtime, (db, web)):
        until(lambda: cpus(runtime, web) == cpus(runtime, db), "one of them is moved")


def test_what_a_move_brought_is_told_later(enforcer: Enforcer) -> None:
    with apart(enforcer) as (runtime, (db, web)):
        until(lambda: cpus(runtime, web) == cpus(runtime, db), "one of them is moved")
        until(lambda: enforcer.metric("numakin_enforcer_moves_proven_total", result="helped") == 1, "it is looked at")
        reasons = [reason for container in enforcer.status()["containers"] for reason in container["reasons"]]
        where = "of what the movers exchange here stays inside a NUMA node"
        assert f"proven 100%: {where}, 0% before, 100% promised: the move helped" in reasons


def test_who_has_too_much_memory_stays_and_is_named(enforcer: Enforcer, memory_cgroups: Path) -> None:
    """db, on the first NUMA node, where its memory is; web stays by its own wish."""
    stays = {"web": {"move.numakin.io": "never"}}
    enforcer.module = "tests.enforcer.little_memory"
    with (
        apart(enforcer, annotations=stays) as (runtime, (db, web)),
        occupied(memory_cgroups, db),
    ):
        before = [cpus(runtime, member) for member in (db, web)]

        def told() -> bool:
            shown = command("status", "--run-dir", str(enforcer.run_dir)).stdout
            return "not moved, as at most 16 MiB are left behind at a time: ns/db (" in " ".join(shown.split())

        until(told, "it is told")
        assert [cpus(runtime, member) for member in (db, web)] == before
    process = enforcer.processes[-1]
    process.terminate()
    process.wait(PATIENCE_S)
    assert enforcer.log.read_text().count("a move is left out for its memory members=ns/db") == 1
