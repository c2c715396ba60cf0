"""One group: its members and where they are, which of its workloads talk to each other, and its locality beside what
would have been possible and what others would have given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from heapq import nlargest

from extender.planning.regrouping import NOT_SEARCHED, Regroupings
from extender.scoring.node_table import NodeState
from extender.state.node_view import NodeView
from extender.state.pods import Allocatable
from extender.views.locality_history import LocalityHistory
from extender.views.page import Row
from extender.views.page.baselines import MOST_NODES, Compared, Comparisons, PlacedGroup, compared, free_milli
from extender.views.page.scene import Line, Reach, Scene
from extender.views.page.shares import group_share, inside, shares
from extender.views.readout import IsLive
from extender.views.regroup import of_group
from numakin.placement.model.demand import Demand

MOST_MEMBERS = 500
MOST_EDGES = 300
"""Of one answer: edges between workloads, the heaviest."""

MOST_COMPARED = 600
"""Members of a group that is still placed anew, to compare: over that it takes too long."""


def group(
    scene: Scene,
    name: str,
    live: IsLive,
    history: LocalityHistory,
    comparisons: Comparisons,
    *,
    regroupings: Regroupings = NOT_SEARCHED,
) -> Row | None:
    """None when no pod is in it. by: what shares are of, traffic or pairs of members. regroup: where it is cut over
    nodes, what would bring more of it together.
    """
    members = scene.groups.get(name)
    if members is None:
        return None
    uids = sorted({member.reservation.pod for member in members}, key=scene.name)
    lines = {line.pods: line for uid in uids for line in scene.lines_of.get(uid, ())}
    own = inside(uids, scene)
    comparison = comparisons.of(name, lambda: _compared(uids, scene, live))
    return {
        "group": name,
        "reasons": _reasons(uids, scene),
        "members": [_member(uid, scene) for uid in uids[:MOST_MEMBERS]],
        "members_known": len(uids),
        "workloads": _workloads(uids, scene),
        "edges": _edges(lines.values(), scene),
        "by": "traffic" if own else "pairs",
        "shares": shares(own),
        "now": group_share(own, members),
        "compared": asdict(comparison) if comparison else None,
        "series": history.of(name),
        "regroup": of_group(regroupings, name),
    }


def _compared(uids: Sequence[str], scene: Scene, live: IsLive) -> Compared | None:
    """None for a group that is too large, or of one."""
    if not 1 < len(uids) <= MOST_COMPARED:
        return None
    workloads = {uid: scene.workload(uid) or uid for uid in uids}
    states = [state for state in scene.picture.nodes if live(state)]
    own: list[NodeView] = []
    elsewhere: list[NodeView] = []
    demands: dict[str, Demand] = {}
    for state in states:
        placed_uids = state.view.index.member_pods & workloads.keys()
        (own if placed_uids else elsewhere).append(state.view)
        for uid in placed_uids:
            demands[workloads[uid]] = _demand(uid, state)
    placed = {uid: workload for uid, workload in workloads.items() if workload in demands}
    views = own + nlargest(max(0, MOST_NODES - len(own)), elsewhere, key=free_milli)
    rows = scene.picture.rows
    overheads = {workload: rows[uid].beside for uid, workload in placed.items() if uid in rows}
    group = PlacedGroup(placed, demands, _weights(placed, scene), overheads)
    return compared(group, views, _allocatable(views, placed, scene))


def _allocatable(views: Iterable[NodeView], uids: Collection[str], scene: Scene) -> dict[str, Allocatable]:
    """What kube-scheduler has to give on each node, less what all pods but these take beside their containers, and less
    their number.
    """
    given = {view.name: [*scene.picture.admission.allocatable(view.name)] for view in views}
    for uid, row in scene.picture.rows.items():
        if row.node in given and not row.ended and uid not in uids:
            given[row.node] = [whole - part for whole, part in zip(given[row.node], (*row.beside, 1), strict=True)]
    return {node: Allocatable(*left) for node, left in given.items()}


def _demand(uid: str, state: NodeState) -> Demand:
    """Of the whole pod, whether its room is held as one or by container."""
    reservations = state.view.occupancy.reservations
    parts = [reservations[key].demand for key in state.view.occupancy.directory.by_pod[uid]]
    return Demand(sum(part.cpu_milli for part in parts), sum(part.memory for part in parts))


def _weights(workloads: Mapping[str, str], scene: Scene) -> dict[tuple[str, str], float]:
    """Between workloads, by their traffic; by their numbers of pairs where none is known."""
    weights: dict[tuple[str, str], float] = {}
    for line in inside(workloads, scene):
        first, second = sorted(workloads[uid] for uid in line.pods)
        weights[first, second] = weights.get((first, second), 0.0) + line.weight
    if weights:
        return weights
    replicas = Counter(workloads.values())
    names = sorted(replicas)
    return {
        (first, second): replicas[first] * replicas[second]
        if first != second
        else replicas[first] * (replicas[first] - 1) / 2
        for first in names
        for second in names
        if first <= second
    }


def _reasons(uids: Iterable[str], scene: Scene) -> list[Row]:
    """Of workloads that were found to belong to the group by their traffic."""
    memberships = scene.known.found.members
    workloads = sorted({scene.workload(uid) for uid in uids} & memberships.keys())
    return [{"workload": workload, "reason": memberships[workload].reason} for workload in workloads]


def _member(uid: str, scene: Scene) -> Row:
    place = scene.places[uid]
    return {
        "uid": uid,
        "pod": scene.name(uid),
        "workload": scene.workload(uid),
        "node": place.node,
        "numa_nodes": list(place.numa_nodes),
    }


def _workloads(uids: Iterable[str], scene: Scene) -> list[Row]:
    """places: replicas by node and NUMA nodes. A pod of which no workload is known yet is one by its own name."""
    places: dict[str, Counter[tuple[str, str]]] = {}
    for uid in uids:
        place = scene.places[uid]
        places.setdefault(scene.workload(uid) or scene.name(uid), Counter())[place.node, str(place.numa_nodes)] += 1
    return [
        {
            "workload": workload,
            "replicas": counts.total(),
            "places": [[node, numa_nodes, count] for (node, numa_nodes), count in sorted(counts.items())],
            "relay": workload in scene.known.relays,
        }
        for workload, counts in sorted(places.items())
    ]


def _edges(lines: Iterable[Line], scene: Scene) -> list[Row]:
    """Between workloads, those of other groups too. source: the end that receives more, as clients mostly do."""
    rates: dict[tuple[str, str], dict[Reach, float]] = {}
    sent: Counter[tuple[str, str]] = Counter()
    for line in lines:
        ends = [scene.workload(pod) or scene.name(pod) for pod in line.pods]
        pair = min(ends), max(ends)
        rates.setdefault(pair, dict.fromkeys(Reach, 0.0))[line.reach] += line.bytes
        sent[pair] += line.sent_by(line.pods[ends.index(pair[0])])  # type: ignore[assignment]
    heaviest = nlargest(MOST_EDGES, rates, key=lambda pair: (sum(rates[pair].values()), pair))
    return [_edge(pair, rates[pair], sent[pair]) for pair in heaviest]


def _edge(pair: tuple[str, str], rates: Mapping[Reach, float], sent: float) -> Row:
    source, target = pair if sent <= sum(rates.values()) / 2 else pair[::-1]
    return {"source": source, "target": target, "bytes": [round(rates[reach], 1) for reach in Reach]}
