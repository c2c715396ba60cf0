"""The best known places of whole groups, with their true traffic: all known at once, or those of each wave at once.

Which groups are whole is settled first: best fit, the largest first and the smallest first, and what
`scipy.optimize.milp` finds within its time; then the others are cut over what is left by a search, one after the other.
The better of all counts, so that it is reached by somebody, and more may be possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy  # its parts are loaded when they are used, which takes half a second

from benchmarks.cluster.load import Instance, talks
from benchmarks.cluster.nodes.population import NodeSpec
from numakin.placement.plan.partition import PartitionProblem
from numakin.placement.plan.search import solve

MILP_S = 20.0

BINS = 16
"""NUMA nodes that a group is cut over at most."""

Free = dict[tuple[str, int], int]
"""Millicores of each NUMA node."""

Whole = dict[Instance, tuple[str, int]]


def free_room(specs: Sequence[NodeSpec]) -> Free:
    free = {
        (spec.name, node.id): 1000 * len(node.cpus) for spec in specs for node in spec.machine.numa_nodes if node.cpus
    }
    for spec in specs:
        for other in spec.others:
            free[spec.name, other.numa_node] -= other.cpu_milli
    return free


def need(group: Instance) -> int:
    return sum(replica.cpu_milli for replica in group.replicas())


def best(specs: Sequence[NodeSpec], groups: Sequence[Instance], milp_s: float = MILP_S) -> dict[Instance, float]:
    """The locality of each group; 1 for those that are whole."""
    return in_waves(specs, [groups], milp_s)


def in_waves(
    specs: Sequence[NodeSpec], waves: Sequence[Sequence[Instance]], milp_s: float = MILP_S
) -> dict[Instance, float]:
    """As `best`, where nothing is known of a wave before it comes, and nothing is moved."""
    free, reached = free_room(specs), dict[Instance, float]()
    for groups in waves:
        found = [_best_fit(free, sorted(groups, key=need, reverse=down)) for down in (True, False)]
        if milp_s and len(groups) > 1:
            found.append(_by_milp(free, groups, milp_s))
        tries = [_with_cuts(dict(free), groups, whole) for whole in found]
        localities, free = max(tries, key=lambda tried: sum(tried[0].values()))
        reached |= localities
    return reached


def _best_fit(free: Mapping[tuple[str, int], int], groups: Sequence[Instance]) -> Whole:
    left, whole = dict(free), Whole()
    for group in groups:
        fitting = [place for place, room in left.items() if room >= need(group)]
        if fitting:
            whole[group] = place = min(fitting, key=lambda place: left[place])
            left[place] -= need(group)
    return whole


def _by_milp(free: Mapping[tuple[str, int], int], groups: Sequence[Instance], seconds: float) -> Whole:
    """As many whole groups as possible."""
    places, needs = list(free), [need(group) for group in groups]
    able = [(g, p) for g, milli in enumerate(needs) for p, place in enumerate(places) if free[place] >= milli]
    if not able:
        return {}
    group_of, place_of = np.array(able).T
    columns = np.arange(len(able))
    once = scipy.sparse.coo_matrix((np.ones(len(able)), (group_of, columns)), shape=(len(groups), len(able)))
    taken = scipy.sparse.coo_matrix((np.array(needs)[group_of], (place_of, columns)), shape=(len(places), len(able)))
    room = np.array([free[place] for place in places])
    answer = scipy.optimize.milp(
        -np.ones(len(able)),
        constraints=[scipy.optimize.LinearConstraint(once, ub=1), scipy.optimize.LinearConstraint(taken, ub=room)],
        integrality=np.ones(len(able)),
        bounds=scipy.optimize.Bounds(0, 1),
        options={"time_limit": seconds, "mip_rel_gap": 0.005},
    )
    if answer.x is None:
        return {}
    return {groups[group_of[at]]: places[place_of[at]] for at in np.flatnonzero(answer.x > 0.5).tolist()}


def _with_cuts(left: Free, groups: Sequence[Instance], whole: Whole) -> tuple[dict[Instance, float], Free]:
    """And what is left."""
    for group, place in whole.items():
        left[place] -= need(group)
    localities = dict.fromkeys(whole, 1.0)
    for group in sorted((group for group in groups if group not in whole), key=need):
        localities[group] = _cut(left, group)
    return localities, left


def _cut(left: Free, group: Instance) -> float:
    """Takes its room from what is left."""
    bins = sorted(left, key=lambda place: -left[place])[:BINS]
    services = {service.name: at for at, service in enumerate(group.app.services)}
    counts = [service.replicas for service in group.app.services]
    pulls: list[dict[int, float]] = [{} for _ in counts]
    for talk in talks(group.replicas()):
        a, b = services[talk.source.service.name], services[talk.target.service.name]
        pulls[a][b] = pulls[b][a] = pulls[a].get(b, 0.0) + talk.calls / (counts[a] * counts[b])
    problem = PartitionProblem(
        sizes=[(service.cpu_milli, 0) for service in group.app.services],
        counts=counts,
        pulls=pulls,
        capacity=[(max(0, left[place]), 1) for place in bins],
        nearness=[[float(a == b) for b in range(len(bins))] for a in range(len(bins))],
        pinned=[[0] * len(bins) for _ in counts],
    )
    state = solve(problem, effort=10)
    for kind, service in enumerate(group.app.services):
        for at, place in enumerate(bins):
            left[place] -= service.cpu_milli * state.counts[kind][at]
    return state.locality()
