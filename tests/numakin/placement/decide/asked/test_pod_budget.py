"""A pod's own CPU budget (pod-level resources) is one set of CPUs that is nobody else's, where these are exclusive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.decide.asked.whole_pod import as_placed
from numakin.placement.decide.decide import Kin, Request, decide
from numakin.placement.model.demand import PodBudget
from numakin.placement.model.rules import Rules
from numakin.placement.optin.parsing import Cpus, Scope
from numakin.placement.state.occupancy import Occupancy
from tests.machines import NO_NUMA
from tests.numakin.placement.asking import asks, demand, filled, settle
from tests.numakin.placement.decide.shapes import KUNPENG, SMALL, XEON

NONE: Mapping[str, int] = {}

EXCLUSIVE: dict[str, Any] = {"cpus": Cpus.EXCLUSIVE}


def part(
    name: str, cpu: float = 0, *, of: float = 4, slices: Mapping[str, int] = NONE, pod: str = "p", **more
) -> Request:
    """A container of a pod of `of` CPUs. cpu: what it asks for itself."""
    own = asks(pod, cpu, 0, name=name, pod_demand=demand(of), **{**EXCLUSIVE, **more})
    return replace(own, budget=PodBudget.of(int(of * 1000), dict(slices)))


def held(occupancy: Occupancy) -> dict[str, str]:
    return {it.name: str(it.exclusive or it.cpus) for it in occupancy.allocations.values()}


def own(occupancy: Occupancy) -> int:
    return len(occupancy.exclusive)


def test_containers_without_requests_share_the_whole_budget_and_no_more():
    after = filled(KUNPENG, part("a"), part("b"), part("c"))
    assert held(after) == {"a": "0-3", "b": "0-3", "c": "0-3"}
    assert own(after) == 4


def test_a_container_with_whole_cpus_of_its_own_has_a_slice_and_the_others_the_rest():
    slices = {"db": 2}
    after = filled(KUNPENG, part("a", slices=slices), part("db", 2, slices=slices), part("b", slices=slices))
    assert held(after) == {"a": "0-1", "db": "2-3", "b": "0-1"}
    assert own(after) == 4


@pytest.mark.parametrize("order", [("a", "db", "b"), ("db", "a", "b"), ("a", "b", "db")])
def test_a_slice_that_is_known_last_leaves_the_part_of_the_others(order):
    """As without the extender: what a container asks for is known when it comes."""
    known: dict[str, int] = {}
    occupancy = Occupancy()
    for name in order:
        known |= {"db": 2} if name == "db" else {}
        occupancy = filled(KUNPENG, part(name, known.get(name, 0), slices=known), occupancy=occupancy)
    a, b, db = (occupancy.allocations[f"p-{name}"].exclusive for name in ("a", "b", "db"))
    assert a == b
    assert a.isdisjoint(db)
    assert (len(a), len(db), own(occupancy)) == (2, 2, 4)


def test_the_reasons_say_of_which_set_it_is_a_part():
    first, after = settle(KUNPENG, Occupancy(), part("db", 2, slices={"db": 2}))
    second, _ = settle(KUNPENG, after, part("a", slices={"db": 2}))
    assert "pod's budget 4 CPUs: a slice of them; exclusive CPUs 2: CPUs 0-1 are shared with nobody" in first.sentence
    assert "exclusive CPUs 2: CPUs 2-3 are shared with its pod's containers alone" in second.sentence


def test_a_budget_that_is_all_slices_leaves_the_others_in_the_shared_pool():
    slices = {"a": 2, "b": 2}
    before = filled(KUNPENG, part("a", 2, slices=slices), part("b", 2, slices=slices))
    decision, after = settle(KUNPENG, before, part("proxy", slices=slices))
    assert not decision.exclusive
    assert decision.fits
    assert decision.numa_nodes == before.reservations["p"].numa_nodes
    assert "pod's budget 4 CPUs: all of them are other containers' alone: shared pool instead" in decision.sentence
    assert own(after) == 4


def test_the_node_s_other_pods_have_no_cpu_of_it():
    before = filled(SMALL, part("a", of=2), asks("other", 1))
    after = filled(SMALL, part("b", of=2), occupancy=before)
    assert after.allocations["other-main"].cpus.isdisjoint(after.exclusive)
    assert after.allocations["p-a"].exclusive == after.allocations["p-b"].exclusive


def test_a_container_that_restarts_in_place_finds_its_part():
    before = filled(KUNPENG, part("a"), part("b"))
    stopped = before.without_allocation("p-a")
    assert filled(KUNPENG, part("a"), occupancy=stopped).allocations == before.allocations


def test_a_budget_that_grows_beyond_what_can_be_spared_leaves_its_containers_in_the_shared_pool():
    """On the CPUs that they had they would be slower than had they not opted in. The last shared CPU is kept."""
    before = filled(NO_NUMA, part("a", of=2), part("b", of=2))
    after = filled(NO_NUMA, part("a"), part("b"), occupancy=before)
    assert held(before) == {"a": "0-1", "b": "0-1"}
    assert own(after) == 0
    assert held(filled(NO_NUMA, part("a"), occupancy=after)) == {"a": "0-3", "b": "0-3"}


def test_a_namespace_s_quota_counts_the_set_once():
    limited = Occupancy(rules=Rules(max_exclusive_cpus_per_namespace=4))
    after = filled(KUNPENG, part("a"), part("b"), part("c"), occupancy=limited)
    assert own(after) == 4
    more, _ = settle(KUNPENG, after, part("x", of=2, pod="q"))
    assert "quota 4 exclusive CPUs" in more.sentence


def test_a_fraction_is_rounded_up_once_for_the_pod():
    assert own(filled(KUNPENG, part("a", of=1.5), part("b", of=1.5))) == 2


def test_whole_cores_are_shared_like_cpus():
    after = filled(XEON, part("a", cpus=Cpus.EXCLUSIVE_CORES), part("b", cpus=Cpus.EXCLUSIVE_CORES))
    assert own(after) == 4
    assert after.allocations["p-a"].exclusive == after.allocations["p-b"].exclusive
    assert all(XEON.core_of(cpu) <= after.exclusive for cpu in after.exclusive)


def test_in_container_scope_the_pod_is_placed_as_one_since_its_budget_is():
    """Of what its containers share no one knows how much each will use."""
    wide = part("a", of=40, scope=Scope.CONTAINER, cpus=Cpus.SHARED)
    assert as_placed(KUNPENG, Occupancy(), wide).opt_in.scope is Scope.POD
    after = filled(KUNPENG, as_placed(KUNPENG, Occupancy(), wide))
    assert after.reservations["p"].demand.cpu_milli == 40_000


def test_shared_containers_count_their_pod_s_budget_once():
    after = filled(KUNPENG, part("a", cpus=Cpus.SHARED), part("b", 3, cpus=Cpus.SHARED))
    assert after.cpu_load(KUNPENG)[0] == 4000


@given(
    budget=st.integers(1, 8),
    containers=st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 3)), max_size=8),
    told=st.booleans(),
    cores=st.booleans(),
)
def test_a_pod_never_has_more_than_its_budget_and_slices_are_nobody_else_s(budget, containers, told, cores):
    """Whatever the order in which its containers come, stop and come again."""
    kind = Cpus.EXCLUSIVE_CORES if cores else Cpus.EXCLUSIVE
    sizes = {name: size for name, size in containers if size}
    known: dict[str, int] = dict(sizes) if told and sum(sizes.values()) <= budget else {}
    occupancy = filled(XEON, asks("other", 2))
    for name, _ in containers:
        size = sizes.get(name, 0)
        known |= {name: size} if size else {}
        request = part(name, size, of=budget, slices=known, cpus=kind)
        if request.container in occupancy.allocations:
            occupancy = occupancy.without_allocation(request.container)
            continue
        decision = decide(XEON, occupancy, request, Kin())
        occupancy = decision.applied(occupancy, request)
        live = {it.name: it.exclusive for it in occupancy.allocations.values() if it.exclusive}
        assert len(occupancy.exclusive) <= max(2 * -(-budget // 2) if cores else budget, sum(sizes.values()) * 2)
        common = {own for it, own in live.items() if not request.budget.slice_of(it)}
        assert len(common) <= 1 or not told
        assert occupancy.allocations["other-main"].cpus.isdisjoint(occupancy.exclusive)
