"""The stand-in kube-scheduler does what the real one was seen to do, the inconvenient included."""

from __future__ import annotations

import threading
from collections import Counter
from random import Random

import numpy as np
import pytest

from lab.standins.scheduler.binding import Binder
from lab.standins.scheduler.cache import MOST_PODS, Room
from lab.standins.scheduler.in_tree import in_tree
from lab.standins.scheduler.sampling import enough
from lab.standins.scheduler.scheduler import DoesNotFitError, Scheduler

GIB = 1 << 30
SMALL = Room(100, GIB // 100)
NODE = Room(8000, 8 * GIB, MOST_PODS)


class Scores:
    """An extender with these scores, 0 for any other node; it keeps what it was offered."""

    def __init__(self, **scores: int) -> None:
        self.offers, self.scores = [], scores

    def prioritize(self, _pod, nodes):
        self.offers.append(list(nodes))
        return {node: self.scores.get(node, 0) for node in nodes}


def scheduler(count: int, extender=None, seed: int = 1, **more) -> Scheduler:
    return Scheduler({f"n{at:03}": NODE for at in range(count)}, extender, random=Random(seed), **more)


@pytest.mark.parametrize(
    ("nodes", "percentage", "wanted"),
    [(10, 0, 10), (100, 0, 100), (150, 0, 100), (1000, 0, 420), (5000, 0, 500), (20000, 0, 1000), (5000, 100, 5000)],
)
def test_it_looks_for_as_many_feasible_nodes_as_the_real_one(nodes, percentage, wanted):
    assert enough(nodes, percentage) == wanted


def test_sampling_goes_on_where_the_last_pod_left_off():
    extender = Scores()
    sampling = scheduler(250, extender)
    for _ in range(3):
        sampling.schedule({}, "web", SMALL)
    assert [offer[0] for offer in extender.offers] == ["n000", "n120", "n240"]
    assert [len(offer) for offer in extender.offers] == [120, 120, 120]


def test_among_equal_nodes_it_draws_lots():
    nodes = Counter(scheduler(4, Scores(), seed).schedule({}, "web", SMALL).node for seed in range(200))
    assert len(nodes) == 4
    assert min(nodes.values()) > 20


def test_an_extenders_point_counts_ten_times_its_weight():
    """Two replicas of one workload on a node set it back by 200 points at most."""
    for score, kept in ((5, True), (1, False)):
        of_one = scheduler(2, Scores(n000=score), weight=5)
        nodes = {of_one.schedule({}, "web", SMALL).node for _ in range(2)}
        assert (nodes == {"n000"}) is kept


def test_a_pod_counts_in_its_cache_before_it_is_bound():
    full = scheduler(1)
    full.schedule({}, "web", Room(8000, GIB))
    with pytest.raises(DoesNotFitError):
        full.schedule({}, "web", SMALL)
    full.forget("n000", "web", Room(8000, GIB))
    assert full.schedule({}, "web", SMALL).node == "n000"


def test_a_node_takes_as_many_pods_as_its_kubelet_says_however_small_they_are():
    full = scheduler(1)
    tiny = Room(0, 0)
    for _ in range(MOST_PODS):
        full.schedule({}, "web", tiny)
    with pytest.raises(DoesNotFitError, match="a place for one more pod"):
        full.schedule({}, "web", tiny)
    full.forget("n000", "web", tiny)
    assert full.schedule({}, "web", tiny).node == "n000"


def test_with_one_feasible_node_no_score_is_asked_for():
    assert scheduler(1, Scores(n000=7)).schedule({}, "web", SMALL).extender == {}


def test_a_filter_is_asked_first_where_there_is_one_and_what_it_refuses_is_not_scored():
    class Refusing(Scores):
        def filter(self, _pod, nodes):
            return [node for node in nodes if node != "n001"]

    extender = Refusing(n001=10)
    assert scheduler(3, extender, filters=extender).schedule({}, "web", SMALL).node != "n001"
    assert extender.offers == [["n000", "n002"]]


def test_in_tree_scores_are_whole_numbers_so_that_nodes_nearly_alike_are_equal():
    shares = np.array([[0.5, 0.5004, 0.25], [0.5, 0.5004, 0.25]])
    assert in_tree(shares, np.zeros(3)).tolist() == [350, 349, 375]


def test_in_tree_scores_prefer_nodes_without_the_workloads_replicas():
    equal = np.full((2, 3), 0.5)
    none, first, two = in_tree(equal, np.array([0.0, 1.0, 2.0])).tolist()
    assert none > first > two


def test_a_binding_is_posted_on_another_thread_while_the_next_pod_is_scheduled():
    let_go = threading.Event()
    with Binder(Random(1), delay_s=(0.0, 0.0)) as binder:
        waiting = binder.bind(lambda: let_go.wait(30))
        assert binder.bind(threading.get_ident).result(30) != threading.get_ident()
        assert not waiting.done()
        let_go.set()
        assert waiting.result(30)
