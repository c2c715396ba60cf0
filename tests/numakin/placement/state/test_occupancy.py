"""Who holds what: reservations and allocations come and go, nothing is shared that is somebody's own, sums never drift."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.errors import AlreadyHeld
from numakin.placement.model.live_usage import Live
from numakin.placement.state.load_index import WIDE, shared_out
from numakin.placement.state.occupancy import Allocation, Occupancy, Part, Reservation, fingerprint
from tests import examples, machines

GIB = machines.GIB


def reservation(pod="a", nodes="0", milli=1000, group="shop/web", memory=GIB, **more):
    demand = Demand(milli, memory, more.pop("limit", memory))
    return Reservation(more.pop("key", pod), pod, group, NumaSet.parse(nodes), demand, **more)


def allocation(container, cpus="", own="", pod="a", **more):
    return Allocation(
        container, "main", pod, more.pop("reservation", pod), CpuSet.parse(cpus), exclusive=CpuSet.parse(own), **more
    )


def test_every_change_is_a_new_generation():
    empty = Occupancy()
    first = empty.with_reservation(reservation())
    assert (empty.generation, first.generation) == (0, 1)
    assert not empty.reservations
    assert first.with_allocation(allocation("c1", "0-3")).generation == 2


def test_what_changes_nothing_is_no_new_generation():
    first = Occupancy().with_reservation(reservation())
    assert first.without_pod("other") is first
    assert first.without_allocation("other") is first
    assert first.without_reservation("other") is first
    assert first.with_live(Live({0: 5})).generation == first.generation


def test_a_stopped_containers_reservation_stays_until_its_sandbox_ends():
    first = Occupancy().with_reservation(reservation()).with_allocation(allocation("c1", "0-1", own="0-1"))
    stopped = first.without_allocation("c1")
    assert not stopped.exclusive
    assert stopped.cpu_load(machines.SMALL) == {0: 1000, 1: 0}
    assert stopped.without_pod("a").cpu_load(machines.SMALL) == {0: 0, 1: 0}


def test_nobody_gets_what_is_anothers_own():
    first = Occupancy().with_allocation(allocation("owner", "2-3", own="2-3"))
    with pytest.raises(AlreadyHeld, match="CPUs 3 of container newcomer are held by container owner"):
        first.with_allocation(allocation("newcomer", "3-4"))
    shared = Occupancy().with_allocation(allocation("sharer", "0-3"))
    with pytest.raises(AlreadyHeld, match="CPUs 2 of container newcomer are held by container sharer"):
        shared.with_allocation(allocation("newcomer", "2", own="2"))


def test_exclusive_cpus_pass_from_one_to_another_in_one_change():
    first = Occupancy().with_allocation(allocation("old", "0-1", own="0-1"))
    after = first.changed(allocations={"new": allocation("new", "0-1", own="0-1"), "old": None})
    assert after.exclusive == CpuSet.parse("0-1")


def test_a_cpu_that_two_were_reported_to_have_alone_stays_taken_when_one_of_them_ends():
    """A report may say so while its containers are still to be set anew."""
    both = {"c1": allocation("c1", "0-3", own="0-2"), "c2": allocation("c2", "0-3", own="0")}
    occupancy = Occupancy().changed(allocations=both, checked=False)
    assert occupancy.changed(allocations={"c2": None}, checked=False).exclusive == CpuSet.parse("0-2")


def test_a_reservation_on_several_numa_nodes_counts_by_their_cpus():
    wide = Occupancy().with_reservation(reservation(nodes="0-2", milli=3000))
    assert wide.cpu_load(machines.CXL) == {0: 1500, 1: 1500, 2: 0}


def test_a_reservation_with_parts_counts_as_they_say():
    parts = (Part(0, 1, 0), Part(1, 2, 3))
    wide = Occupancy().with_reservation(reservation(nodes="0-1", milli=3000, memory=300, parts=parts))
    assert wide.cpu_load(machines.SMALL) == {0: 1000, 1: 2000}
    assert wide.memory_load(machines.SMALL) == {0: 0, 1: 300}


@pytest.mark.parametrize("lost", [2, 9])
def test_what_a_part_carried_is_carried_by_the_others_once_its_numa_node_or_its_cpus_are_gone(lost):
    """Its containers run on what is left."""
    parts = (Part(0, 1, 1), Part(1, 2, 1), Part(lost, 3, 0))
    wide = Occupancy().with_reservation(reservation(nodes=f"0-1,{lost}", milli=3000, parts=parts))
    assert wide.cpu_load(machines.CXL) == {0: 1000, 1: 2000, 2: 0}


@pytest.mark.parametrize("nodes", ["0", "3", "9"])
@pytest.mark.parametrize("bound", [True, False])
def test_a_reservation_on_one_numa_node_counts_there_as_one_that_says_so_does(nodes, bound):
    received = Part(NumaSet.parse(nodes).lowest, 5, 7)

    def load(*parts):
        mems = NumaSet.parse(nodes) if bound else NumaSet()
        there = (
            Occupancy()
            .with_reservation(reservation("a", nodes, 1500, limit=3 * GIB, parts=parts))
            .with_allocation(allocation("c", mems=mems))
        )
        return there.load(machines.XEON_SNC2)

    assert load() == (load(received) if nodes != "9" else Occupancy().load(machines.XEON_SNC2))


def test_exclusive_cpus_count_whole_and_not_twice():
    first = Occupancy().with_reservation(reservation(milli=1500)).with_allocation(allocation("c1", "0-1", own="0-1"))
    assert first.cpu_load(machines.SMALL) == {0: 2000, 1: 0}
    assert first.cpu_load(machines.SMALL, but="a") == {0: 0, 1: 0}


def test_exclusive_cpus_count_where_they_are():
    first = (
        Occupancy()
        .with_reservation(reservation(nodes="0-1", milli=2000))
        .with_allocation(allocation("c1", "4-5", own="4-5"))
    )
    assert first.cpu_load(machines.SMALL) == {0: 0, 1: 2000}


def test_a_bound_reservation_counts_all_that_it_may_use():
    first = Occupancy().with_reservation(reservation(memory=GIB, limit=3 * GIB))
    assert first.load(machines.SMALL).rows[0].committed == GIB
    bound = first.with_allocation(allocation("c1", "0-3", mems=NumaSet.of([0])))
    assert bound.load(machines.SMALL).rows[0].committed == 3 * GIB
    assert bound.without_allocation("c1").load(machines.SMALL).rows[0].committed == GIB


def test_a_reservation_on_a_numa_node_that_the_machine_has_not_counts_nowhere():
    assert Occupancy().with_reservation(reservation(nodes="7")).cpu_load(machines.SMALL) == {0: 0, 1: 0}


def test_members_are_found_by_group_without_ones_own_pod():
    first = (
        Occupancy()
        .with_reservation(reservation("a"))
        .with_reservation(reservation("b"))
        .with_reservation(reservation("x", group="shop/db"))
        .with_reservation(reservation("n", group=""))
    )
    assert [each.pod for each in first.members("shop/web")] == ["a", "b"]
    assert [each.pod for each in first.members("shop/web", but="a")] == ["b"]
    assert first.members("") == []


def test_only_a_chosen_reservation_is_opted_in():
    assert reservation("uid").opted_in
    assert reservation("uid", key="uid/main").opted_in
    assert not reservation("uid", key="0123abcd", group="").opted_in


def test_the_fingerprint_does_not_depend_on_order_but_on_everything_held():
    a, b = reservation("a"), reservation("b")
    first, second = allocation("c1", "0"), allocation("c2", "1")
    whole = fingerprint([a, b], [first, second])
    assert fingerprint([b, a], [second, first]) == whole
    assert 0 <= whole < 2**64
    for reservations, allocations in (
        ([a], [first, second]),
        ([a, reservation("b", nodes="1")], [first, second]),
        ([a, reservation("b", milli=1)], [first, second]),
        ([a, reservation("b", alone=True)], [first, second]),
        ([a, b], [first, allocation("c2", "2")]),
        ([a, b], [first, allocation("c2", "1", own="1")]),
    ):
        assert fingerprint(reservations, allocations) != whole


def test_the_fingerprint_is_the_same_in_every_process():
    program = (
        "from tests.numakin.placement.state.test_occupancy import *;"
        "print(fingerprint([reservation('a'), reservation('b', nodes='1')], [allocation('c', '0-2', '0')]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    expected = fingerprint([reservation("a"), reservation("b", nodes="1")], [allocation("c", "0-2", "0")])
    assert outputs == {f"{expected}\n"}


def test_sums_are_made_anew_for_reservations_that_were_put_in_from_outside():
    on_small = Occupancy().on(machines.SMALL).with_reservation(reservation("a", milli=1000))
    other = {"b": reservation("b", nodes="1", milli=3000)}
    replaced = replace(on_small, reservations=other)
    assert replaced.cpu_load(machines.SMALL) == {0: 0, 1: 3000}
    assert set(replaced.directory.by_pod) == {"b"}
    assert replaced.fingerprint == fingerprint(other.values(), [])


def test_a_pod_in_parts_is_one_replica_and_one_member():
    before = Occupancy().with_reservation(reservation("b", "1", workload="web"))
    parts = {
        f"a/{name}": reservation("a", nodes, 1000, workload="web", key=f"a/{name}")
        for name, nodes in (("one", "0"), ("two", "1"), ("three", "1"))
    }
    after = before.changed(parts)
    assert after.directory.placed == {"web": {WIDE: 1, 1: 1}}
    assert after.directory.grouped == {0b11: {"shop/web": 1}, 0b10: {"shop/web": 1}}
    whole = after.whole_pods()["a"]
    assert (whole.key, str(whole.numa_nodes), whole.demand.cpu_milli) == ("a", "0-1", 3000)
    assert after.without_reservation("a/one").directory.placed == {"web": {1: 2}}
    assert after.without_pod("a").directory.grouped == before.directory.grouped


@given(st.integers(0, 10**15), st.lists(st.integers(-5, 10**9), min_size=1, max_size=20))
def test_what_is_shared_out_adds_up(total, weights):
    shares = shared_out(total, weights)
    assert sum(shares) == total
    assert all(share >= 0 for share in shares)
    if any(weight > 0 for weight in weights):
        assert all(share == 0 for share, weight in zip(shares, weights, strict=True) if weight <= 0)


class Lives(RuleBasedStateMachine):
    """Pods come, are given CPUs, stop, restart and go: sums carried along equal sums counted anew."""

    def __init__(self):
        super().__init__()
        self.machine = machines.XEON_SNC2
        self.occupancy = Occupancy().on(self.machine)
        self.number = 0

    pods = Bundle("pods")

    @rule(
        target=pods,
        nodes=st.sampled_from(["0", "1", "2", "0-1", "0-3"]),
        milli=st.integers(0, 9000),
        workload=st.sampled_from(["", "web", "db"]),
    )
    def comes(self, nodes, milli, workload):
        self.number += 1
        pod = f"p{self.number}"
        self.occupancy = self.occupancy.with_reservation(reservation(pod, nodes, milli, workload=workload))
        return pod

    @rule(pod=pods, name=st.sampled_from("ab"), nodes=st.sampled_from(["0", "1", "0-1"]))
    def has_a_container_elsewhere(self, pod, name, nodes):
        part = reservation(pod, nodes, 500, workload="web", key=f"{pod}/{name}")
        self.occupancy = self.occupancy.with_reservation(part)

    @rule(pod=pods, cpu=st.integers(0, 79), own=st.booleans(), bound=st.booleans())
    def is_given_a_cpu(self, pod, cpu, own, bound):
        cpus = str(cpu)
        mine = allocation(f"{pod}-c", cpus, cpus if own else "", pod, mems=NumaSet.of([0]) if bound else NumaSet())
        try:
            self.occupancy = self.occupancy.with_allocation(mine)
        except AlreadyHeld:
            return

    @rule(pod=pods)
    def stops(self, pod):
        self.occupancy = self.occupancy.without_allocation(f"{pod}-c")

    @rule(pod=pods, milli=st.integers(0, 9000))
    def is_resized(self, pod, milli):
        self.occupancy = self.occupancy.with_reservation(reservation(pod, "3", milli))

    @rule(pod=consumes(pods))
    def goes(self, pod):
        self.occupancy = self.occupancy.without_pod(pod)

    @invariant()
    def the_sums_are_those_counted_anew(self):
        anew = Occupancy(self.occupancy.reservations, self.occupancy.allocations)
        carried, counted = self.occupancy.load(self.machine), anew.load(self.machine)
        assert {entry: row for entry, row in carried.rows.items() if any(row)} == {
            entry: row for entry, row in counted.rows.items() if any(row)
        }
        assert self.occupancy.exclusive == anew.exclusive
        assert set(self.occupancy.directory.by_pod) == set(anew.directory.by_pod)
        assert self.occupancy.directory.placed == anew.directory.placed
        assert self.occupancy.directory.grouped == anew.directory.grouped
        assert self.occupancy.fingerprint == anew.fingerprint
        assert self.occupancy.fingerprint == fingerprint(
            self.occupancy.reservations.values(), self.occupancy.allocations.values()
        )

    @invariant()
    def no_cpu_is_owned_twice(self):
        owned = [cpu for entry in self.occupancy.allocations.values() for cpu in entry.exclusive]
        assert len(owned) == len(set(owned))


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=examples.of(30), stateful_step_count=30, deadline=None)
