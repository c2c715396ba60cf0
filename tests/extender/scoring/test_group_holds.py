"""What is planned for a group."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from extender.scoring.group_holds import GroupHolds, HeldPlan
from extender.scoring.waiting_members import WaitingMembers
from extender.state.columns.free_room import NumaPlace
from numakin.placement.model.demand import Demand
from tests.extender.machines import pod

HERE, BESIDE, AWAY = NumaPlace("a", 0), NumaPlace("a", 1), NumaPlace("b", 0)


@pytest.mark.parametrize(
    ("waiting", "to_come", "together"),
    [
        ([HERE, HERE], [HERE], True),
        ([HERE], [], True),
        ([], [HERE], True),
        ([HERE, BESIDE], [], False),
        ([HERE], [AWAY], False),
        ([], [], False),
    ],
)
def test_a_group_is_planned_together_where_one_numa_node_is_to_have_all_that_comes(
    waiting: Sequence[NumaPlace], to_come: Sequence[NumaPlace], *, together: bool
) -> None:
    holds, places = GroupHolds(), {f"web-{at}": place for at, place in enumerate(waiting)}
    assert not holds.together("shop"), "of which nothing is known"
    holds.moving({"shop": 1}, {"shop": 1}, now=0.0, lasts_s=60.0)
    demands = dict.fromkeys(places, Demand(1000))
    holds.plan(HeldPlan({"shop": places}, demands, to_come={"shop": {"default/Deployment/web": to_come}}))
    assert holds.together("shop") is together


def test_a_group_moves_on_that_comes_one_pod_at_a_time() -> None:
    """As a StatefulSet's pods: the next one is created when the one before it runs."""
    holds, waiting = GroupHolds(), WaitingMembers()
    waiting.seen(pod("db-0"))
    holds.moving(waiting.changes, waiting.created, now=0.0, lasts_s=60.0)
    waiting.gone("db-0")
    waiting.seen(pod("db-1"))
    assert holds.moving(waiting.changes, waiting.created, now=61.0, lasts_s=60.0) == {"default/shop"}
    assert holds.growing(now=61.0) == {"default/shop"}


def test_a_copy_yields_to_the_same_pods() -> None:
    holds = GroupHolds()
    holds.moving({"shop": 1}, {"shop": 1}, now=0.0, lasts_s=60.0)
    holds.plan(HeldPlan({"shop": {"web": HERE}}, {"web": Demand(1000)}, {"shop": -10}))
    assert [each.yielding_to("other", 0) for each in (holds, holds.copy())] == [{"shop"}, {"shop"}]
