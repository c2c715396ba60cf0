"""On which NUMA nodes the members' memory lies, by the files of their cgroups."""

from __future__ import annotations

from pathlib import Path

import pytest

from enforcer.machine.cgroup import CgroupTree
from enforcer.observer.member_memory import MemberMemory
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.state.memory_places import MemoryPlaces
from numakin.placement.state.occupancy import Allocation, Occupancy
from numakin.wire import local_pb2 as local
from tests.enforcer.observer.moves.apart import at
from tests.machines import SMALL, machine


class Members:
    """Of a machine with two NUMA nodes: a is on the first, b on the second, each with one container."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self.memory = MemberMemory(CgroupTree(unified=top), SMALL)
        self.occupancy: Occupancy = at(a="0", b="1")
        for pod in "ab":
            allocation = Allocation(f"c-{pod}", "main", pod, pod, CpuSet.parse("0"))
            self.occupancy = self.occupancy.with_allocation(allocation)

    def has(self, pod: str, on_first: int, on_second: int) -> None:
        folder = self._top / f"pod{pod}"
        folder.mkdir(exist_ok=True)
        text = f"anon N0={on_first} N1={on_second}\nfile N0=0 N1=0\n"
        (folder / "memory.numa_stat").write_text(text)

    def told(self, *pods: str, opted_in: bool = True, whole: bool = False, gone: tuple[str, ...] = ()) -> None:
        containers = [local.LocalContainer(id=f"c-{pod}", cgroups_path=f"/pod{pod}", opted_in=opted_in) for pod in pods]
        self.memory.received(local.Containers(containers=containers, whole=whole, gone=gone))

    def places(self, *pods: str) -> MemoryPlaces | None:
        return self.memory.places(self.occupancy, [self.occupancy.allocations[f"c-{pod}"] for pod in pods])


@pytest.fixture
def members(tmp_path: Path) -> Members:
    made = Members(tmp_path)
    made.has("a", 100, 20)
    made.has("b", 7, 50)
    made.told("a", "b")
    return made


def test_memory_on_another_numa_node_than_its_members_is_away(members: Members) -> None:
    assert members.places("a") == MemoryPlaces(near=100, away=20)
    assert members.places("b") == MemoryPlaces(near=50, away=7)
    assert members.places("a", "b") == MemoryPlaces(near=150, away=27)


def test_it_is_read_anew_each_time(members: Members) -> None:
    members.has("a", 120, 0)
    assert members.places("a") == MemoryPlaces(near=120)


def test_a_reservation_has_what_its_containers_have(members: Members) -> None:
    occupancy = members.occupancy.with_allocation(Allocation("c-b", "side", "a", "a"))
    assert members.memory.of(occupancy, "a") == {0: 107, 1: 70}
    assert members.memory.of(occupancy, "unknown") == {}


def test_who_has_not_opted_in_is_not_looked_at(members: Members) -> None:
    members.told(whole=True)
    members.told("a", opted_in=False)
    assert members.memory.of(members.occupancy, "a") == {}


def test_who_is_gone_is_not_looked_at(members: Members) -> None:
    members.told(gone=("c-a",))
    assert members.memory.of(members.occupancy, "a") == {}
    assert members.memory.of(members.occupancy, "b") == {0: 7, 1: 50}


def test_one_that_cannot_be_read_counts_as_nothing(members: Members, tmp_path: Path) -> None:
    (tmp_path / "poda/memory.numa_stat").write_text("nonsense")
    assert members.places("a", "b") == MemoryPlaces(near=50, away=7)


def test_where_none_can_be_read_nothing_is_known(members: Members, tmp_path: Path) -> None:
    for pod in "ab":
        (tmp_path / f"pod{pod}/memory.numa_stat").unlink()
    assert members.places("a", "b") is None
    assert members.places() == MemoryPlaces(), "without members there is nothing"


def test_a_path_that_leads_nowhere_counts_as_nothing(members: Members) -> None:
    members.memory.received(local.Containers(containers=[local.LocalContainer(id="c-a", opted_in=True)]))
    up = local.LocalContainer(id="c-b", cgroups_path="/../b", opted_in=True)
    members.memory.received(local.Containers(containers=[up]))
    assert members.places("a", "b") is None


def test_on_a_changed_machine_what_is_near_changes(members: Members) -> None:
    members.memory.on(machine("the first NUMA node has lost its memory", ["0-3", "4-7"], [0, 8]))
    assert members.places("a") == MemoryPlaces(near=20, away=100)
