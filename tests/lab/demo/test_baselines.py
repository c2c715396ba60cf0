"""What an operator could write by hand instead: how far each way goes, and where it breaks."""

from __future__ import annotations

import pytest

from lab.demo import baselines
from lab.demo.__main__ import MACHINES as DEMO
from lab.demo.baselines import BASELINES
from lab.demo.locality import NOWHERE, Place, locality
from lab.demo.pod_affinity import PodAffinity
from lab.demo.shop import SHOPS, Pod, arrivals
from lab.standins.machines import MACHINES

BY_NAME = {baseline.name: baseline for baseline in BASELINES}
SEEDS = range(1, 6)


def placed(name: str, seed: int, times: int = 1) -> dict[Pod, Place]:
    machines = {node: MACHINES[kind].machine for node, kind in DEMO.items()}
    return baselines.placed(machines, arrivals(seed, times), BY_NAME[name], seed)


def share(name: str, seed: int, times: int = 1) -> float:
    return locality(placed(name, seed, times), SHOPS).numa


def pending(name: str, times: int) -> int:
    return sum(place == NOWHERE for seed in SEEDS for place in placed(name, seed, times).values())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_kubelets_aligning_alone_leaves_most_calls_between_numa_nodes(seed: int) -> None:
    assert share("spread", seed) < 0.1 < share("lowest first", seed) < 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rule_over_nodes_helps_and_one_over_numa_nodes_does_the_rest_while_a_group_fits_one(seed: int) -> None:
    assert share("lowest first", seed) < share("required podAffinity, lowest first", seed)
    assert share("required podAffinity, balloons", seed) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_balloon_that_outgrows_its_numa_node_is_local_for_none_of_its_pods(seed: int) -> None:
    by_hand = share("required podAffinity, lowest first", seed, times=2)
    assert share("required podAffinity, balloons", seed, times=2) < by_hand


def test_what_a_group_has_beyond_one_node_stays_pending_where_the_rule_is_required() -> None:
    assert pending("required podAffinity, lowest first", times=6) > 0
    assert pending("preferred podAffinity, lowest first", times=6) == 0


def test_the_first_pod_of_a_group_may_go_anywhere_and_the_others_where_one_is() -> None:
    rule = PodAffinity(required=True)
    pod = {"group": "berlin"}
    assert rule.filter(pod, ["a", "b"]) == ["a", "b"]
    rule.bound("berlin", "b")
    assert rule.filter(pod, ["a", "b"]) == ["b"]
    assert rule.filter({"group": "lima"}, ["a", "b"]) == ["a", "b"]


def test_where_it_is_preferred_nodes_with_more_pods_of_the_group_have_more_points() -> None:
    rule = PodAffinity(required=False)
    for node in ("a", "a", "b"):
        rule.bound("berlin", node)
    assert rule.prioritize({"group": "berlin"}, ["a", "b", "c"]) == {"a": 10, "b": 5, "c": 0}
    assert rule.filter({"group": "berlin"}, ["a", "b", "c"]) == ["a", "b", "c"]


def test_a_pod_that_stays_pending_is_near_to_nobody() -> None:
    pods = [pod for pod in arrivals(1) if pod.shop == "berlin"]
    assert locality(dict.fromkeys(pods, NOWHERE), SHOPS).node == 0.0
