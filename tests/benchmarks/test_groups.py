"""Groups of unlike sizes whose pods come mixed are nearly as whole as the best known, and more than rules by hand make
them.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from statistics import fmean

import pytest

from benchmarks.cluster.load import Instance, locality
from benchmarks.cluster.nodes.population import NodeSpec, population
from benchmarks.groups import apart, best, by_hand, drawn, play, update

Cluster = tuple[list[NodeSpec], list[Instance]]


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    random = Random(4)
    specs = population(6, random)
    return specs, drawn.groups(specs, 0.25, random)


def mean_locality(groups: list[Instance], places: play.Places) -> float:
    return fmean(locality(group.replicas(), places) for group in groups)


@pytest.mark.parametrize("order", ["mixed", "trickled"])
def test_groups_are_nearly_as_whole_as_the_best_known_and_more_than_by_rules(cluster: Cluster, order: str):
    specs, groups = cluster
    waves = drawn.ORDERS[order](groups, Random(4))
    known = fmean(best.best(specs, groups, milp_s=0).values())
    ours = mean_locality(groups, play.placed(specs, waves, 4, settled=order == "mixed"))
    pods = [replica for wave in waves for replica in wave]
    rules = [
        mean_locality(groups, by_hand.placed(specs, pods, policy, 4, required=required))
        for policy in by_hand.POLICIES
        for required in (True, False)
    ]
    assert ours >= 0.9 * known
    assert ours > max(rules)


def test_the_best_known_cuts_no_group_that_fits_beside_the_others(cluster: Cluster):
    specs, groups = cluster
    alone = {group: best.best(specs, [group], milp_s=0)[group] for group in groups}
    together = best.best(specs, groups, milp_s=0)
    assert all(together[group] <= alone[group] + 1e-9 for group in groups)


@pytest.mark.parametrize("by", play.Apart)
def test_replicas_that_are_kept_apart_are_and_the_pieces_are_nearly_as_whole_as_the_best_known(by: play.Apart):
    random = Random(4)
    specs = population(6, random)
    zones = {spec.name: play.zone(spec) for spec in specs}
    groups = apart.groups(specs, 0.15, random)
    pods = [replica for group in groups for replica in group.replicas()]
    random.shuffle(pods)
    ours = play.placed(specs, [pods], 4, settled=True, apart=by)
    known = apart.best_known(specs, groups, by)
    for places in (ours, known):
        nodes = {pod: places[pod][0] for pod in pods}
        there = Counter((pod.workload, nodes[pod] if by is play.Apart.HOST else zones[nodes[pod]]) for pod in pods)
        assert max(there.values()) == (1 if by is play.Apart.HOST else 2)
    assert mean_locality(groups, ours) >= 0.9 * mean_locality(groups, known)


def test_after_an_update_of_all_at_once_no_group_is_cut_that_fits():
    found = update.told(3, 0.3, 1, update.Pace(), 1)
    assert (found.before.fitting, found.after.fitting, found.pending) == (0, 0, 0)
