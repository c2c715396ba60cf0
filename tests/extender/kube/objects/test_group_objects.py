"""Objects of ours go when their group is gone and forgotten; an operator's stay."""

from __future__ import annotations

import pytest

from extender.kube.objects.group_objects import IDLE_S, GroupObjects
from extender.kube.objects.grouprows import GroupRow
from extender.state.group_spec import GroupSpec
from extender.state.pods import Changes
from extender.traffic.known import ClusterTraffic
from extender.traffic.learned import LearnedGroup, written
from numakin.placement.optin.options import Defaults
from numakin.placement.traffic.graph import Amount, Costs, Graph, Key

EDGE = Key("shop/Deployment/cart", "shop/Deployment/db", "tcp")
EDGES = {EDGE: Amount(1000.0, 10.0)}
LEARNED = written(LearnedGroup((), EDGES), Costs())
REMEMBERED, FORGOTTEN = ClusterTraffic(Graph(EDGES, Costs())), ClusterTraffic()


class World:
    def __init__(self) -> None:
        self.now = 1000.0
        self.objects = GroupObjects(lambda: self.now)

    def there(self, *rows: GroupRow) -> None:
        self.objects.changed(Changes(rows, whole=True))

    def forgotten(self, *here: str, known: ClusterTraffic = FORGOTTEN) -> list[str]:
        return [row.name for row in self.objects.forgotten(here, known)]


@pytest.fixture
def world() -> World:
    return World()


def test_an_object_of_ours_goes_some_time_after_its_groups_last_member(world):
    world.there(GroupRow("shop", "web", ours=True))
    assert world.forgotten("shop/web") == []
    world.now += IDLE_S
    assert world.forgotten() == []
    world.now += IDLE_S - 1
    assert world.forgotten() == []
    world.now += 1
    assert world.forgotten() == ["web"]


def test_a_member_in_between_begins_the_time_anew(world):
    world.there(GroupRow("shop", "web", ours=True))
    world.forgotten()
    world.now += IDLE_S
    world.forgotten("shop/web")
    assert world.forgotten() == []


def test_an_operators_object_stays(world):
    world.there(GroupRow("shop", "web", GroupSpec(), ours=False))
    world.forgotten()
    world.now += IDLE_S
    assert world.forgotten() == []


def test_an_object_stays_as_long_as_what_it_holds_is_remembered(world):
    world.there(GroupRow("shop", "web", learned=LEARNED, ours=True))
    world.forgotten(known=REMEMBERED)
    world.now += IDLE_S
    assert world.forgotten(known=REMEMBERED) == []
    world.now += IDLE_S
    assert world.forgotten(known=FORGOTTEN) == ["web"]


def test_specs_are_by_group_and_follow_the_objects(world):
    web, mail = GroupSpec(Defaults(size=3)), GroupSpec(Defaults(size=4))
    world.there(GroupRow("shop", "Web", web), GroupRow("shop", "mail", mail), GroupRow("shop", "none"))
    assert world.objects.specs() == {"shop/Web": web, "shop/mail": mail}
    world.objects.changed(Changes((GroupRow("shop", "mail", web),), gone=(GroupRow("shop", "Web").key,)))
    assert world.objects.specs() == {"shop/mail": web}
    world.there()
    assert world.objects.specs() == {}
