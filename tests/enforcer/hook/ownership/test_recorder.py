"""The record of what was given: private, whole or not there, bounded, and made anew when it is damaged."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from enforcer.hook.ownership import checkpoint, private_file
from enforcer.hook.ownership.checkpoint import Grant, Past
from enforcer.hook.ownership.recorder import spare_of
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.state.occupancy import Occupancy
from tests.enforcer.hook.world import container, pod, two_numa_nodes
from tests.enforcer.restarts import Restarting


@pytest.fixture
def node(tmp_path: Path) -> Restarting:
    made = Restarting(two_numa_nodes(), tmp_path)
    made.create(pod("a", group="web"), container("a"))
    made.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    made.recorder.write()
    return made


@pytest.fixture
def file(tmp_path: Path, node: Restarting) -> Path:
    return tmp_path / "allocations.json"


def test_it_tells_what_each_container_was_given(node: Restarting, file: Path) -> None:
    past = checkpoint.read(file.read_text())
    own = past.grants["own"]
    assert (own.pod, own.exclusive, own.cpus) == ("uid-own", node.cpus("own"), node.cpus("own"))
    assert past.grants["a"] == Grant(
        "uid-a", NumaSet.parse("0"), node.cpus("a"), node.agent.occupancy.allocations["a"].mems, reservation="uid-a"
    )
    assert past.exclusive == node.cpus("own")


def test_nobody_else_can_read_or_write_it(file: Path) -> None:
    about = file.lstat()
    assert stat.S_IMODE(about.st_mode) == 0o600
    assert about.st_uid == os.geteuid()
    assert [path.name for path in file.parent.iterdir()] == [file.name], "no draft is left"


def test_it_is_not_written_again_while_nothing_changes_and_comes_back_when_it_was_deleted(
    node: Restarting, file: Path
) -> None:
    before = file.stat().st_ino
    node.recorder.write()
    assert file.stat().st_ino == before
    file.unlink()
    node.recorder.write()
    assert checkpoint.read(file.read_text()).grants


def a_link(file: Path) -> None:
    (file.parent / "elsewhere").write_text(file.read_text())
    (file.parent / "elsewhere").chmod(0o600)
    file.unlink()
    file.symlink_to("elsewhere")


def a_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def edited(**changes: object):
    return lambda file: file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def with_row(**changes: object):
    row = {"pod": "p", "homes": "0", "cpus": "0-1", "mems": "0", "exclusive": "", "externally_managed": False}
    return edited(containers={"c": row | changes})


DAMAGES = {
    "half of it": lambda file: file.write_text(file.read_text()[:-20]),
    "empty": lambda file: file.write_text(""),
    "not text": lambda file: file.write_bytes(b"\xff\xfe"),
    "nested": lambda file: file.write_text("[" * 100_000),
    "a list": lambda file: file.write_text("[1]"),
    "another version": edited(version=2),
    "no version": lambda file: file.write_text("{}"),
    "released is a word": edited(released="yes"),
    "too many": edited(containers={str(number): {} for number in range(checkpoint.MOST + 1)}),
    "who is kept off is a word": edited(kept_off="c"),
    "who is kept off is a number": edited(kept_off=[1]),
    "not rows": edited(containers=[1, 2]),
    "a row is a number": edited(containers={"c": 1}),
    "CPUs are a number": with_row(cpus=3),
    "CPUs are no list": with_row(cpus="x-y"),
    "exclusive beyond its CPUs": with_row(exclusive="0-7"),
    "parts are a word": with_row(parts="half"),
    "a part is a list of words": with_row(parts=[["0", "1", "2"]]),
    "parts are numbers": with_row(parts=[1, 2, 3]),
    "a reservation is a number": with_row(reservation=1),
    "a cache is no list": with_row(cache_domain="x"),
    "what was before is a list": with_row(before=[1]),
    "what was before is no grant": with_row(before={"pod": "p"}),
    "a row without a pod": edited(containers={"c": {"cpus": "0"}}),
    "too long": lambda file: file.write_text(" " * (5 << 20)),
    "readable by others": lambda file: file.chmod(0o644),
    "a link": a_link,
    "a FIFO": a_fifo,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_one_is_told_and_made_anew(
    node: Restarting, file: Path, damage, caplog: pytest.LogCaptureFixture
) -> None:
    """The marks of the containers and their cgroups say what they can meanwhile."""
    damage(file)
    before = dict(node.cgroups)
    node.kill()
    node.start()
    assert "the file is made anew" in caplog.text
    assert node.cgroups == before
    assert set(checkpoint.read(private_file.read(file, 1 << 20)).grants) == {"a", "own"}


def test_what_is_in_its_way_costs_the_record_alone(node: Restarting, file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "full").touch()
    node.create(pod("b", group="web"), container("b"))
    node.recorder.write()
    assert "directory" in node.recorder.failure.lower()
    assert node.agent.records.counts["not written down"] == 1
    (file / "full").unlink()
    file.rmdir()
    node.recorder.write()
    assert not node.recorder.failure
    assert "b" in checkpoint.read(file.read_text()).grants


def test_what_the_run_folder_does_not_take_is_kept_in_memory_until_it_does(
    node: Restarting, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node.fill()
    node.create(pod("b", group="web"), container("b"))
    node.recorder.write()
    assert "kept in memory" in caplog.text
    assert "b" not in checkpoint.read(file.read_text()).grants
    assert "b" in checkpoint.read(private_file.read(node.spare, 1 << 20)).grants
    node.empty()
    node.recorder.write()
    assert "b" in checkpoint.read(file.read_text()).grants
    assert not node.spare.exists()


def test_a_spare_that_somebody_else_may_have_written_is_not_taken(node: Restarting, file: Path) -> None:
    node.kill()
    node.spare.write_text(file.read_text().replace("uid-own", "uid-forged"))
    node.spare.chmod(0o666)
    node.start()
    assert node.agent.occupancy.allocations["own"].exclusive == node.cpus("own")
    assert not node.spare.exists()


def test_each_run_folder_has_a_spare_of_its_own(tmp_path: Path) -> None:
    spares = {spare_of(folder).name for folder in (tmp_path / "a", tmp_path / "b", tmp_path / "a" / ".." / "b")}
    assert len(spares) == 2


def test_before_the_runtime_has_told_anything_nothing_is_forgotten(node: Restarting, file: Path) -> None:
    node.kill()
    node.start(joined=False)
    node.recorder.write()
    assert set(checkpoint.read(file.read_text()).grants) == {"a", "own"}


def test_those_with_exclusive_cpus_come_first_when_there_are_more_than_are_recorded() -> None:
    shared = {str(number): Grant("p", cpus=CpuSet.parse("0")) for number in range(checkpoint.MOST)}
    own = {"own": Grant("p", cpus=CpuSet.parse("1"), exclusive=CpuSet.parse("1"))}
    text = checkpoint.Wording().text(Occupancy(), Past(shared | own), released=True)
    past = checkpoint.read(text)
    assert past.released
    assert len(past.grants) == checkpoint.MOST
    assert past.grants["own"] == own["own"]
