"""What was learned is read before it is written, and written only when it says something new."""

from __future__ import annotations

import pytest

from extender.kube.objects.grouprows import GroupRow
from extender.kube.objects.saved_learning import REWRITE_S, SavedLearning, notable
from extender.state.pods import Changes
from extender.traffic.known import ClusterTraffic
from extender.traffic.learned import LearnedGroup, read, written
from numakin.placement.traffic.graph import Amount, Costs, Graph, Key

CART, DB, CACHE = "shop/Deployment/cart", "shop/StatefulSet/db", "shop/Deployment/cache"
EDGE, OTHER = Key(CART, DB, "tcp"), Key(DB, CACHE, "tcp")
DECLARED = {CART: "shop/web", DB: "shop/web"}
COSTS = Costs()


def text(*edges: Key, size: float = 1000.0) -> str:
    return written(LearnedGroup((), dict.fromkeys(edges, Amount(size, 10.0))), COSTS)


class World:
    """One replica: what its learner has been given, and what it knows."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str]] = []
        self.now = 1000.0
        self.known = ClusterTraffic()
        self.lasting = SavedLearning(lambda *one: self.given.append(one), lambda: self.known, lambda: self.now)

    def learns(self, *edges: Key, size: float = 1000.0, declared: dict[str, str] = DECLARED) -> None:
        """Takes in what it was given, and is seen to know these edges."""
        self.sees(dict.fromkeys(edges, Amount(size, 10.0)), declared)

    def sees(self, rates: dict[Key, Amount], declared: dict[str, str] = DECLARED) -> None:
        self.known = ClusterTraffic(Graph(rates, COSTS), declared=declared, restored=len(self.given))

    def there(self, learned: str, *, whole: bool = False) -> None:
        """What the object says at the API server."""
        self.lasting.changed(Changes((GroupRow("shop", "web", learned=learned),), whole=whole))

    def written(self, *, last: bool = False) -> str | None:
        result = self.lasting.texts(last=last).get("shop/web")
        return result.text if result else None


@pytest.fixture
def world() -> World:
    return World()


def test_nothing_is_written_before_everything_was_read(world):
    world.learns(EDGE)
    assert world.written() is None
    world.lasting.changed(Changes(whole=True))
    assert world.written() == text(EDGE)


def test_what_is_there_is_taken_in_once_and_not_written_over_before_it_is_known(world):
    world.learns(EDGE)
    world.there(text(OTHER), whole=True)
    assert world.given == [("shop/web", text(OTHER))]
    assert world.written() is None
    world.learns(EDGE, OTHER)
    world.now += REWRITE_S
    assert read(world.written(), "").edges.keys() == {EDGE, OTHER}
    world.there(text(OTHER), whole=True)
    assert len(world.given) == 1


def test_what_another_replica_wrote_meanwhile_is_taken_in_by_the_one_that_publishes_next(world):
    world.lasting.changed(Changes(whole=True))
    world.there(text(OTHER))
    world.learns(EDGE)
    assert world.given == []
    assert world.written() is None
    assert world.given == [("shop/web", text(OTHER))]
    world.learns(EDGE, OTHER)
    world.now += REWRITE_S
    assert read(world.written(), "").edges.keys() == {EDGE, OTHER}


def test_our_own_writing_is_no_news_however_late_it_is_told(world):
    world.lasting.changed(Changes(whole=True))
    texts = []
    for size in (1e6, 2e6, 4e6):
        world.learns(EDGE, size=size)
        texts.append(world.written())
        world.now += REWRITE_S
    for entry in texts:
        world.there(entry)
        assert world.written() == texts[-1]
    assert world.given == []


def test_what_hardly_changes_is_not_written_again_and_what_does_at_most_once_a_minute(world):
    world.lasting.changed(Changes(whole=True))
    world.learns(EDGE, size=1e6)
    first = world.written()
    world.now += REWRITE_S
    world.learns(EDGE, size=1.05e6)
    assert world.written() == first
    world.learns(EDGE, size=2e6)
    second = world.written()
    assert second != first
    world.learns(EDGE, size=8e6)
    assert world.written() == second


def test_a_new_edge_is_written_within_the_minute_however_light_it_is(world):
    world.lasting.changed(Changes(whole=True))
    world.learns(EDGE, size=1e9)
    world.written()
    world.sees({EDGE: Amount(1e9, 10.0), OTHER: Amount(1.0, 1.0)})
    assert read(world.written(), "").edges.keys() == {EDGE}
    world.now += REWRITE_S
    assert read(world.written(), "").edges.keys() == {EDGE, OTHER}


def test_what_a_texts_bound_cuts_off_is_no_news_each_minute(world):
    world.lasting.changed(Changes(whole=True))
    many = [Key(CART, f"shop/Deployment/{number:0200}", "tcp") for number in range(400)]
    world.learns(*many, size=1e6)
    first = world.written()
    assert 0 < len(read(first, "").edges) < len(many)
    world.now += REWRITE_S
    world.learns(*many, size=1.05e6)
    assert world.written() == first


def test_at_the_end_nothing_is_kept_back(world):
    world.lasting.changed(Changes(whole=True))
    world.learns(EDGE, size=1e6)
    first = world.written()
    world.learns(EDGE, size=8e6)
    assert world.written() == first
    assert world.written(last=True) == text(EDGE, size=8e6)


def test_the_end_writes_over_nothing_that_was_not_taken_in(world):
    world.learns(EDGE)
    assert world.written(last=True) is None
    world.there(text(OTHER), whole=True)
    assert world.written(last=True) is None


def test_the_first_that_is_learned_of_a_group_is_written_at_once(world):
    world.lasting.changed(Changes(whole=True))
    world.learns()
    assert not world.written()
    world.learns(EDGE)
    assert world.written() == text(EDGE)


def test_edges_between_workloads_that_rest_stay_with_their_group(world):
    world.lasting.changed(Changes(whole=True))
    world.learns(EDGE, OTHER)
    assert read(world.written(), "").edges.keys() == {EDGE, OTHER}
    third = Key(CART, CACHE, "tcp")
    world.now += REWRITE_S
    world.learns(third, OTHER, declared={CART: "shop/web"})
    assert read(world.written(), "").edges.keys() == {third, OTHER}


def test_edges_that_rest_outlive_a_return_in_parts(world):
    """A group is scaled to nothing, and the first of its workloads comes back."""
    third = Key(CART, CACHE, "tcp")
    world.lasting.changed(Changes(whole=True))
    world.learns(third, OTHER)
    world.there(world.written())
    world.learns(third, OTHER, declared={})
    assert world.written() is None
    world.learns(third, OTHER, declared={CART: "shop/web"})
    assert read(world.written(), "").edges.keys() == {third, OTHER}


def test_what_a_group_taught_in_its_last_minute_is_written_when_nobody_speaks_for_it_any_more(world):
    world.lasting.changed(Changes(whole=True))
    world.learns(EDGE)
    world.there(world.written())
    world.learns(EDGE, OTHER)
    assert read(world.written(), "").edges.keys() == {EDGE}
    world.learns(EDGE, OTHER, declared={})
    world.now += REWRITE_S
    text = world.written()
    assert read(text, "").edges.keys() == {EDGE, OTHER}
    world.there(text)
    assert world.written() is None


def test_a_group_that_nobody_speaks_for_gets_no_object_anew(world):
    world.lasting.changed(Changes(whole=True))
    world.learns(EDGE)
    assert world.written()
    world.learns(EDGE, OTHER, declared={})
    world.now += REWRITE_S
    assert world.written() is None


def test_a_group_that_nobody_speaks_for_is_left_as_it_is(world):
    world.there(text(EDGE), whole=True)
    world.learns(EDGE, declared={})
    assert world.written() is None


def test_an_object_that_is_gone_is_written_anew(world):
    world.there(text(EDGE), whole=True)
    world.learns(EDGE)
    assert world.written() == text(EDGE)
    world.lasting.changed(Changes(gone=("shop/web",)))
    assert world.written() == text(EDGE)


@pytest.mark.parametrize(
    ("before", "after", "worth_writing"),
    [
        (LearnedGroup(), LearnedGroup(), False),
        (LearnedGroup(), LearnedGroup((CART,)), True),
        (LearnedGroup(), LearnedGroup((), {EDGE: Amount(1, 1)}), True),
        (LearnedGroup((), {EDGE: Amount(1e6, 1)}), LearnedGroup((), {EDGE: Amount(1e6, 1), OTHER: Amount(1, 1)}), True),
        (LearnedGroup((), {EDGE: Amount(1e6, 1)}), LearnedGroup(), True),
        (LearnedGroup((), {EDGE: Amount(1e6, 1)}), LearnedGroup((), {EDGE: Amount(1.01e6, 1)}), False),
    ],
)
def test_a_tenth_of_a_groups_traffic_and_each_new_edge_is_worth_writing(before, after, worth_writing):
    assert notable(before, after, COSTS) is worth_writing
