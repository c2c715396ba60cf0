"""What share of a group's pairs could be on one NUMA node at best."""

from __future__ import annotations

import pytest

from extender.state.groups import Member, locality
from extender.views.group_metrics import possible
from placement.model.cpuset import NumaSet
from placement.model.demand import Demand
from placement.state.occupancy import Reservation
from tests.machines import GIB, SMALL
from tests.placement.asking import demand


def group(*numa_nodes: int, of: Demand) -> list[Member]:
    """Members of SMALL, two NUMA nodes of 4 CPUs and 8 GiB each, by where they are."""
    return [
        Member("n1", Reservation(f"p{number}", f"p{number}", "ns/shop", NumaSet.of([node]), of), expected=False)
        for number, node in enumerate(numa_nodes)
    ]


@pytest.mark.parametrize(
    ("members", "asked", "best"),
    [
        (4, demand(1), 1.0),
        (8, demand(1), 2 * 4 * 3 / (8 * 7)),
        (5, demand(1), 4 * 3 / (5 * 4)),
        (4, Demand(100, 3 * GIB), 2 * 2 * 1 / (4 * 3)),
        (3, demand(5), 0.0),
        (3, Demand(), 1.0),
    ],
    ids=[
        "all on one",
        "half on each",
        "one is left over",
        "memory decides",
        "none fits beside another",
        "nothing asked",
    ],
)
def test_as_many_as_fit_share_a_numa_node(members: int, asked: Demand, best: float) -> None:
    assert possible(group(*[0] * members, of=asked), [SMALL]) == pytest.approx(best)


def test_what_is_reached_is_never_more_where_everybody_fits() -> None:
    packed = group(0, 0, 0, 0, 1, 1, 1, 1, of=demand(1))
    assert locality(packed) == pytest.approx(possible(packed, [SMALL]))


def test_without_any_machine_nothing_is_possible() -> None:
    assert possible(group(0, 0, of=demand(1)), []) == 0.0
