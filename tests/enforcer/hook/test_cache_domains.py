"""Members within a cache domain of an EPYC in NPS1, event by event: the kernel's files are real ones in a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lab.standins.machines import MACHINES
from numakin.placement.model.cpuset import CpuSet
from tests.enforcer.hook.busy_node import BusyNode
from tests.enforcer.hook.world import container, pod
from tests.enforcer.restarts import Restarting

NAME = "epyc-7763-nps1"
MACHINE = MACHINES[NAME].machine
FIRST, SECOND = CpuSet.parse("0-7,128-135"), CpuSet.parse("8-15,136-143")
GROUPS = ("cores", "caches", "sockets")
SOCKET = CpuSet.parse("0-63,128-191")


class Node(BusyNode):
    """Whose members ask to be kept within a cache."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, NAME)

    def create(self, name: str, asked: float = 1, **annotations: str) -> CpuSet:
        return super().create(name, asked, **{"group": "web", "span": "cache", **annotations})

    def pass_rounds(self, busy: CpuSet, *, used: dict[str, float], rounds: int) -> dict[str, CpuSet]:
        """Rounds of five seconds with these CPUs in use; the last cpusets that the runtime is given."""
        given: dict[str, CpuSet] = {}
        for _ in range(rounds):
            given |= self.pass_time(dict.fromkeys(busy, 1.0), used)
        return given


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_busy_cache_lets_its_members_out_and_takes_them_back_when_they_use_less(node: Node) -> None:
    for name in ("a", "b"):
        assert node.create(name) == FIRST
    node.pass_rounds(CpuSet(), used={}, rounds=2)
    assert node.pass_rounds(FIRST, used={"a": 10, "b": 6}, rounds=12) == {"a": SOCKET, "b": SOCKET}
    spread = CpuSet.parse("0-19")
    assert node.pass_rounds(spread, used={"a": 12, "b": 8}, rounds=40) == {}, "they would fill it again"
    assert node.create("c") == SECOND
    assert node.pass_rounds(CpuSet.parse("0-3"), used={"a": 2, "b": 2, "c": 0}, rounds=60) == {"a": FIRST, "b": FIRST}


def test_where_the_whole_machine_is_busy_and_others_run_in_the_cache_too_nobody_gains_by_leaving(node: Node) -> None:
    node.create("a")
    assert node.pass_rounds(MACHINE.cpus, used={"a": 10}, rounds=12) == {}


def test_who_fills_a_cache_alone_is_let_out_to_where_others_have_all_the_rest(node: Node) -> None:
    node.create("a")
    assert node.pass_rounds(MACHINE.cpus, used={"a": 16}, rounds=12) == {"a": SOCKET}


def test_a_full_numa_node_lets_out_of_its_caches_into_the_machine(node: Node) -> None:
    node.create("a")
    assert node.pass_rounds(SOCKET, used={"a": 10}, rounds=12) == {"a": MACHINE.cpus}


def test_without_the_members_own_use_a_hot_cache_stays_open(node: Node) -> None:
    node.create("a")
    node.pass_rounds(CpuSet(), used={}, rounds=2)
    assert node.pass_rounds(FIRST, used={}, rounds=12) == {"a": SOCKET}
    assert node.pass_rounds(CpuSet(), used={}, rounds=60) == {}


def test_a_member_without_room_is_taken_in_once_there_is(node: Node) -> None:
    full = {f"full{at}": node.create(f"full{at}", 15.75, group=f"g{at}") for at in range(16)}
    assert {len(cpus) for cpus in full.values()} == {16}
    home = node.create("late", 0.5)
    assert len(home) == 128
    neighbour = next(name for name, cpus in full.items() if cpus <= home)
    node.stop(neighbour)
    assert node.pass_rounds(CpuSet(), used={}, rounds=1) == {"late": full[neighbour]}


def test_a_resize_beyond_the_cache_lets_its_members_out(node: Node) -> None:
    node.create("a", 8)
    node.create("b", 8)
    larger = container("a", 9)
    updates = node.agent.update_container(
        pod("a", group="web", span="cache"), container("a", 8), larger.linux.resources
    )
    assert {update.container_id: update.linux.resources.cpu.cpus for update in updates} == {
        "a": str(SOCKET),
        "b": str(SOCKET),
    }


def test_a_domain_whose_cpu_went_offline_is_left_for_a_whole_one(node: Node) -> None:
    node.create("a")
    left = MACHINE.cpus - CpuSet.parse("7")
    smaller = replace(
        MACHINE,
        numa_nodes=tuple(replace(numa_node, cpus=numa_node.cpus & left) for numa_node in MACHINE.numa_nodes),
        **{kind: tuple(cpus & left for cpus in getattr(MACHINE, kind) if cpus & left) for kind in GROUPS},
    )
    node.agent.rehoming.onto(replace(node.agent.ledger.node, machine=smaller))
    assert node.cpus("a") == SOCKET & left
    assert node.pass_rounds(CpuSet(), used={}, rounds=1) == {"a": SECOND}


@pytest.mark.parametrize("lost", [False, True], ids=["written down", "file lost"])
def test_a_restarted_enforcer_knows_its_members_within_a_cache(tmp_path: Path, *, lost: bool) -> None:
    node = Restarting(MACHINE, tmp_path)
    for name in ("a", "b"):
        node.create(pod(name, group="web", span="cache"), container(name))
    node.recorder.write()
    before = dict(node.cgroups)
    assert node.cpus("a") == FIRST
    node.kill()
    if lost:
        for file in tmp_path.iterdir():
            file.unlink()
        for _, made in node.running.values():
            made.annotations.clear()
    node.start()
    assert node.cgroups == before
    node.create(pod("c", group="web", span="cache"), container("c"))
    assert node.cpus("c") == FIRST


def test_what_runs_already_is_kept_within_a_cache_at_synchronize(tmp_path: Path) -> None:
    node = Restarting(MACHINE, tmp_path)
    node.kill()
    for name in ("a", "b"):
        node.create(pod(name, group="web", span="cache"), container(name))
    node.start()
    assert {node.cpus("a"), node.cpus("b")} == {FIRST}


def test_a_cpuset_like_a_cache_is_somebody_elses_where_the_member_did_not_ask_for_one(tmp_path: Path) -> None:
    node = Restarting(MACHINE, tmp_path)
    node.kill()
    node.create(pod("a", group="web"), container("a", claim=str(FIRST)))
    node.start()
    assert node.agent is not None
    assert node.agent.occupancy.allocations["a"].externally_managed
