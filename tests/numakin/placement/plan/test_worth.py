"""A step's worth is what the search for steps reckons with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.plan.problem import Workload
from numakin.placement.plan.rebalance import Board
from numakin.placement.plan.worth import gained
from numakin.placement.state.occupancy import Occupancy, Reservation
from tests import machines
from tests.numakin.placement.asking import demand, nodes

PODS = "abcdef"
MACHINE = machines.SMALL

pairs = st.tuples(st.sampled_from(PODS), st.sampled_from(PODS)).filter(lambda pair: pair[0] < pair[1])


@given(
    st.fixed_dictionaries(dict.fromkeys(PODS, st.sampled_from([str(cpu_node) for cpu_node in MACHINE.cpu_nodes]))),
    st.dictionaries(pairs, st.floats(0.1, 10), min_size=1, max_size=8),
    st.sampled_from([0.1, 1.3]),
)
def test_what_was_chosen_is_worth_what_it_was_chosen_for(homes, weights, cpu):
    """With 1.3 CPUs each, members mostly have to change places."""
    occupancy = Occupancy()
    for pod, home in homes.items():
        occupancy = occupancy.with_reservation(Reservation(pod, pod, "", nodes(home), demand(cpu)))
    rows: dict[str, dict[str, float]] = {pod: {} for pod in PODS}
    for (first, other), weight in weights.items():
        rows[first][other] = rows[other][first] = weight
    known = [Workload(pod, reservation.demand, 1) for pod, reservation in occupancy.reservations.items()]
    board = Board.of(MACHINE, occupancy, {pod: pod for pod in PODS}, known, weights, movable=PODS)
    for step in board.steps(4, pays=1e-6):
        share = gained(MACHINE, occupancy, {first.reservation: first.target for first in step}, rows) / sum(
            weights.values()
        )
        assert share == pytest.approx(step[0].gain)
        for first in step:
            occupancy = occupancy.changed(
                {first.reservation: Reservation(first.reservation, first.reservation, "", first.target, demand(cpu))}
            )


def test_who_is_not_here_or_on_several_numa_nodes_does_not_count():
    occupancy = Occupancy()
    for pod, home in (("a", "0"), ("wide", "0-1")):
        occupancy = occupancy.with_reservation(Reservation(pod, pod, "", nodes(home), demand(1)))
    assert gained(MACHINE, occupancy, {"a": nodes("1")}, {"a": {"wide": 3.0, "gone": 5.0}}) == 0
