"""Members that are kept within a cache go to their kin's, where that is worth it, and never to where they do not fit; on
Rome and Milan as such machines show themselves.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.standins.machines import MACHINES
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.live_usage import Live
from numakin.placement.model.topology import Machine
from numakin.placement.plan.between_caches import between_caches
from numakin.placement.plan.worth import gained_in_caches
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation
from tests.numakin.placement.asking import demand

ROME, MILAN = (MACHINES[name].machine for name in ("epyc-7742-nps1", "epyc-7763-nps1"))
EACH = pytest.mark.parametrize("machine", [ROME, MILAN], ids=["Rome", "Milan"])
PODS = "abcdef"


def domain(machine: Machine, at: int, numa_node: int = 0) -> CpuSet:
    return CpuSet(machine.cache_domains[numa_node][at])


def there(machine: Machine, where: dict[str, int], cpu: float = 1, numa_node: int = 0) -> Occupancy:
    """Each pod kept within a domain of the NUMA node, by number; -1: within none."""
    occupancy = Occupancy().on(machine)
    for pod, at in where.items():
        within = domain(machine, at, numa_node) if at >= 0 else CpuSet()
        occupancy = occupancy.with_reservation(
            Reservation(pod, pod, "", NumaSet.of((numa_node,)), demand(cpu), cache_domain=within)
        )
    return occupancy


def steps(
    machine: Machine, occupancy: Occupancy, talk: dict[str, float], *, movable: str = PODS, budget: int = 2, **more
):
    """Each as (pod, to) by the domain's number. talk: weights of pairs, "ab" for a and b."""
    weights = {(pair[0], pair[1]): weight for pair, weight in talk.items()}
    more = {"pays": 0.002, **more}
    made = between_caches(machine, occupancy, weights, movable=movable, budget=budget, **more)
    domains = [CpuSet(mask) for masks in machine.cache_domains.values() for mask in masks]
    return [[(way.reservation, domains.index(way.target_domain)) for way in step] for step in made]


@EACH
def test_a_member_goes_to_the_cache_of_its_kin(machine):
    assert steps(machine, there(machine, {"a": 0, "b": 3}), {"ab": 1.0}, movable="a") == [[("a", 3)]]


@EACH
def test_a_step_names_where_it_leads_and_what_it_brings(machine):
    occupancy, weights = there(machine, {"a": 0, "b": 3, "c": 5}), {("a", "b"): 1.0, ("b", "c"): 3.0}
    ((way,),) = between_caches(machine, occupancy, weights, movable="b", budget=2, pays=0.002)
    assert (way.source, way.target) == (NumaSet.of((0,)), NumaSet.of((0,)))
    assert (way.source_domain, way.target_domain) == (domain(machine, 3), domain(machine, 5))
    assert way.gain == pytest.approx(0.75)


@EACH
def test_two_change_places_where_neither_has_room(machine):
    whole = len(domain(machine, 0))
    occupancy = there(machine, {"a": 0, "b": 1}, cpu=whole - 1)
    for pod, at in (("c", 0), ("d", 1)):
        occupancy = occupancy.with_reservation(
            Reservation(pod, pod, "", NumaSet.of((0,)), demand(1), cache_domain=domain(machine, at))
        )
    (step,) = steps(machine, occupancy, {"ad": 1.0, "bc": 1.0})
    assert sorted(step) in ([("a", 1), ("b", 0)], [("c", 1), ("d", 0)])


@EACH
def test_a_cache_that_is_full_hot_or_of_exclusive_cpus_takes_nobody(machine):
    talk = {"ab": 1.0}
    full = there(machine, {"a": 0, "b": 1, "c": 1}, cpu=len(domain(machine, 1)) / 2)
    assert steps(machine, full, talk, movable="a") == []
    hot = there(machine, {"a": 0, "b": 1})
    assert steps(machine, hot.with_live(Live(hot={domain(machine, 1).mask: True})), talk, movable="a") == []
    own = Allocation("x", "x", "x", "x", domain(machine, 1), exclusive=domain(machine, 1))
    taken = there(machine, {"a": 0, "b": 1, "x": -1}).with_allocation(own)
    assert steps(machine, taken, talk, movable="a") == []


@EACH
def test_kin_on_exclusive_cpus_draw_and_stay(machine):
    own = CpuSet.of([domain(machine, 4).lowest])
    occupancy = there(machine, {"a": 0, "x": -1}).with_allocation(Allocation("x", "x", "x", "x", own, exclusive=own))
    assert steps(machine, occupancy, {"ax": 1.0}, movable="ax") == [[("a", 4)]]


@EACH
def test_who_is_kept_within_no_cache_or_on_another_numa_node_draws_nobody(machine):
    assert steps(machine, there(machine, {"a": 0, "b": -1}), {"ab": 1.0}) == []
    apart = there(machine, {"a": 0})
    far = there(machine, {"b": 3}, numa_node=1).reservations["b"]
    assert steps(machine, apart.with_reservation(far), {"ab": 1.0}) == []


@EACH
@pytest.mark.parametrize(
    "more", [{"movable": ""}, {"budget": 0}, {"pays": 1.1}], ids=["nobody may", "no budget", "too little"]
)
def test_nobody_moves_without_leave_or_for_too_little(machine, more):
    assert steps(machine, there(machine, {"a": 0, "b": 1}), {"ab": 1.0}, **more) == []


@EACH
def test_what_was_declined_is_not_offered_again(machine):
    occupancy, talk = there(machine, {"a": 0, "b": 1}), {"ab": 1.0}
    ways = [
        frozenset({("a", NumaSet.of((0,)), domain(machine, 1))}),
        frozenset({("b", NumaSet.of((0,)), domain(machine, 0))}),
    ]
    assert steps(machine, occupancy, talk, declined=ways[:1]) == [[("b", 0)]]
    assert steps(machine, occupancy, talk, declined=ways) == []


@EACH
def test_two_who_would_lose_each_other_go_together(machine):
    occupancy, talk = there(machine, {"a": 0, "b": 0, "c": 1}), {"ab": 10.0, "ac": 6.0, "bc": 6.0}
    assert steps(machine, occupancy, talk, movable="ab") == []
    (chain,) = steps(machine, occupancy, talk, movable="ab", search=2_000, chain_budget=3)
    assert sorted(chain) == [("a", 1), ("b", 1)]
    declined = [frozenset((pod, NumaSet.of((0,)), domain(machine, 1)) for pod in "ab")]
    assert steps(machine, occupancy, talk, movable="ab", search=2_000, chain_budget=3, declined=declined) == []
    assert steps(machine, occupancy, talk, movable="ab", search=2_000, chain_budget=3, pays=0.3) == []


def test_both_numa_nodes_share_one_budget_and_the_best_comes_first():
    occupancy = there(MILAN, {"a": 0, "b": 1})
    for pod, at in (("c", 0), ("d", 1)):
        occupancy = occupancy.with_reservation(there(MILAN, {pod: at}, numa_node=1).reservations[pod])
    made = steps(MILAN, occupancy, {"ab": 1.0, "cd": 5.0}, movable="ac", budget=1)
    assert made == [[("c", 9)]]
    assert steps(MILAN, occupancy, {"ab": 1.0, "cd": 5.0}, movable="ac", budget=2) == [[("c", 9)], [("a", 1)]]


talk_of_two = st.dictionaries(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")).filter(lambda pair: pair[0] < pair[1]),
    st.integers(1, 9).map(float),
)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1, 8.5])), min_size=8, max_size=8),
    st.tuples(talk_of_two, talk_of_two),
    st.integers(1, 6),
)
def test_the_steps_are_those_that_would_be_chosen_one_by_one_from_all_numa_nodes(where, weights, budget):
    occupancy, talk = Occupancy().on(MILAN), {}
    for number, (at, cpu) in enumerate(where):
        numa_node, pod = divmod(number, 4)
        key = f"{numa_node}{'abcd'[pod]}"
        occupancy = occupancy.with_reservation(there(MILAN, {key: at}, cpu, numa_node).reservations[key])
    for numa_node, pairs_there in enumerate(weights):
        talk |= {(f"{numa_node}{a}", f"{numa_node}{b}"): weight for (a, b), weight in pairs_there.items()}
    movable = [*occupancy.reservations]
    made = between_caches(MILAN, occupancy, talk, movable=movable, budget=budget, pays=0.002)
    one_by_one = []
    while budget > 0 and (first := between_caches(MILAN, occupancy, talk, movable=movable, budget=budget, pays=0.002)):
        one_by_one.append(first[0])
        budget -= len(first[0])
        for way in first[0]:
            moved = replace(occupancy.reservations[way.reservation], cache_domain=way.target_domain)
            occupancy = occupancy.with_reservation(moved)
    assert made == tuple(one_by_one)


pairs = st.tuples(st.sampled_from(PODS), st.sampled_from(PODS)).filter(lambda pair: pair[0] < pair[1])


@given(
    st.sampled_from([ROME, MILAN]),
    st.fixed_dictionaries(dict.fromkeys(PODS, st.integers(0, 3))),
    st.dictionaries(pairs, st.floats(0.1, 10), min_size=1, max_size=8),
    st.sampled_from([1, 2.6]),
    st.integers(1, 4),
    st.sampled_from([0, 200]),
)
def test_each_step_fits_pays_and_is_worth_what_it_was_chosen_for(machine, where, weights, cpu, budget, search):
    occupancy = there(machine, where, cpu)
    rows: dict[str, dict[str, float]] = {pod: {} for pod in PODS}
    for (first, other), weight in weights.items():
        rows[first][other] = rows[other][first] = weight
    made = between_caches(
        machine, occupancy, weights, movable=PODS, budget=budget, pays=0.002, search=search, chain_budget=4
    )
    assert sum(map(len, made)) <= (budget if len(made) != 1 else max(budget, 4))
    for step in made:
        worth = gained_in_caches(occupancy, {way.reservation: way.target_domain for way in step}, rows)
        assert worth / sum(weights.values()) == pytest.approx(step[0].gain)
        assert step[0].gain >= 0.002 * len(step) * (1 - 1e-9)
        before = occupancy.directory.within
        for way in step:
            reservation = occupancy.reservations[way.reservation]
            assert reservation.cache_domain == way.source_domain
            moved = Reservation(
                reservation.key, reservation.pod, "", reservation.numa_nodes, reservation.demand,
                cache_domain=way.target_domain,
            )  # fmt: skip
            occupancy = occupancy.with_reservation(moved)
        for mask, milli in occupancy.directory.within.items():
            assert milli <= max(before.get(mask, 0), 1000 * mask.bit_count())
