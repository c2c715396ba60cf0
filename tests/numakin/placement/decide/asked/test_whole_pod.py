"""A pod in container scope is placed as one, while a NUMA node holds it; else its containers keep near each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from numakin.placement.decide.asked.whole_pod import as_placed
from numakin.placement.decide.decide import Kin, Request, decide
from numakin.placement.model.topology import Machine
from numakin.placement.optin.parsing import Cpus, Policy, Scope
from numakin.placement.plan.plan import Plan, PlannedSlots
from numakin.placement.state.occupancy import Occupancy
from tests.numakin.placement.asking import asks, at, demand, filled, nodes
from tests.numakin.placement.decide.shapes import KUNPENG, SMALL, XEON


def parts(pod: str, *cpu: float, **wishes) -> list[Request]:
    """A pod's containers, by what each asks for; one GiB each."""
    whole = demand(sum(cpu), len(cpu))
    return [
        asks(pod, each, scope=Scope.CONTAINER, name=f"c{number}", pod_demand=whole, **wishes)
        for number, each in enumerate(cpu)
    ]


def created(machine: Machine, occupancy: Occupancy, *requests: Request, kin: Kin | None = None) -> Occupancy:
    """One after the other, as a node does it."""
    for asked in requests:
        request = as_placed(machine, occupancy, asked)
        decision = decide(machine, occupancy, request, kin or Kin())
        assert decision.fits
        occupancy = decision.applied(occupancy, request)
    return occupancy


def homes(occupancy: Occupancy, pod: str) -> list[str]:
    return sorted(str(reservation.numa_nodes) for reservation in occupancy.members_of(pod))


STRANGERS = st.lists(st.integers(1, 24), max_size=6)
CONTAINERS = st.lists(st.integers(1, 8), min_size=2, max_size=4)
"""At most the 32 CPUs of a NUMA node."""


@given(strangers=STRANGERS, cpu=CONTAINERS, cpus=st.sampled_from(Cpus), data=st.data())
def test_in_whatever_order_they_come_all_end_on_one_numa_node_that_has_room_for_the_pod(strangers, cpu, cpus, data):
    before = filled(KUNPENG, *(asks(f"s{n}", each, group=f"shop/s{n}") for n, each in enumerate(strangers)))
    assume(any(load + 1000 * sum(cpu) + 1000 <= 32_000 for load in before.cpu_load(KUNPENG).values()))
    after = created(KUNPENG, before, *data.draw(st.permutations(parts("p", *cpu, cpus=cpus))))
    (whole,) = after.members_of("p")
    assert len(whole.numa_nodes) == 1
    assert whole.demand == demand(sum(cpu), len(cpu))


@given(cpu=CONTAINERS, other=CONTAINERS, data=st.data())
def test_pods_that_start_at_once_leave_each_other_the_room_for_all_of_their_containers(cpu, other, data):
    mixed = data.draw(st.permutations([*parts("p", *cpu), *parts("q", *other)]))
    after = created(KUNPENG, Occupancy(), *mixed)
    assert all(len(place) == 1 for pod in "pq" for place in homes(after, pod))
    assert max(after.cpu_load(KUNPENG).values()) <= 32_000
    assert [len(after.members_of(pod)) for pod in "pq"] == [1, 1]


@given(strangers=STRANGERS, cpu=CONTAINERS, data=st.data())
def test_none_is_refused_that_would_fit_by_itself(strangers, cpu, data):
    occupancy = filled(KUNPENG, *(asks(f"s{n}", each, group=f"shop/s{n}") for n, each in enumerate(strangers)))
    for asked in data.draw(st.permutations(parts("p", *cpu))):
        alone = decide(KUNPENG, occupancy, asked, Kin())
        request = as_placed(KUNPENG, occupancy, asked)
        decision = decide(KUNPENG, occupancy, request, Kin())
        assert decision.fits >= alone.fits
        occupancy = decision.applied(occupancy, request)


class TestThatNoNumaNodeHolds:
    """SMALL has four CPUs on each of two NUMA nodes, KUNPENG 32 on each of four."""

    def test_each_container_is_placed_by_itself(self):
        after = created(SMALL, Occupancy(), *parts("p", 3, 3))
        assert homes(after, "p") == ["0", "1"]

    def test_it_follows_the_others_before_all_other_kin(self):
        busy = filled(KUNPENG, asks("x", 10, group="shop/x"), asks("kin", 1, group="shop/k"))
        assert str(busy.reservations["kin"].numa_nodes) == "1"
        first, *following = parts("p", 20, 8, 8, group="")
        started = created(KUNPENG, busy, first, kin=at("3"))
        after = created(KUNPENG, started, *following, kin=Kin({"kin": 100.0}))
        assert homes(after, "p") == ["2", "3", "3"], "12 CPUs are left beside the first, and 2 is its neighbour"

    def test_what_was_nominated_for_all_of_them_makes_none_wide(self):
        after = created(SMALL, Occupancy(), *parts("p", 3, 3), kin=at("0-1"))
        assert homes(after, "p") == ["0", "1"]

    def test_one_that_starts_again_stays_by_itself(self):
        first, second = parts("p", 3, 3)
        apart = created(SMALL, Occupancy(), first, second)
        again = created(SMALL, apart.without_allocation(second.container), replace(second, pod_demand=demand(1)))
        assert again.members_of("p") == apart.members_of("p")

    def test_each_is_aligned_as_its_policy_says(self):
        first, second = parts("p", 3, 3, policy=Policy.SINGLE_NUMA_NODE)
        after = created(SMALL, Occupancy(), first)
        assert decide(SMALL, after, as_placed(SMALL, after, second), Kin()).admitted


def test_a_container_goes_to_its_device_where_the_others_are_not():
    plain, gpu = parts("p", 1, 1)
    started = created(SMALL, Occupancy(), plain)
    assert homes(started, "p") == ["0"]
    after = created(SMALL, started, replace(gpu, devices=(nodes("1"),)))
    assert str(after.reservations["p/c1"].numa_nodes) == "1"


def test_a_peer_in_parts_draws_as_one():
    apart = created(SMALL, Occupancy(), *parts("p", 3, 3))
    newcomer = asks("n", 1)
    told = decide(SMALL, apart, newcomer, Kin({"p": 1.0}))
    assert told.score == decide(SMALL, apart, newcomer, Kin()).score, "by traffic as by its group"
    assert str(told.reasons[0]) == "its kin are near 75%: NUMA node 0"


@pytest.mark.parametrize(("left", "slot"), [(14, "0"), (13, "1")])
def test_a_plan_keeps_its_slot_for_the_whole_pod(left, slot):
    """left: CPUs on the planned NUMA node."""
    busy = filled(XEON, asks("x", XEON.cpu_counts[0] - left, group="shop/x"))
    assert str(busy.reservations["x"].numa_nodes) == "0"
    first, *_ = parts("p", 4, 10, workload="shop/Deployment/web")
    plan = Plan(slots={first.workload: (PlannedSlots(nodes("0"), 1),)}, demands={first.workload: first.pod_demand})
    advice = plan.slot(XEON, busy, as_placed(XEON, busy, first), Kin())
    assert str(advice) == slot
