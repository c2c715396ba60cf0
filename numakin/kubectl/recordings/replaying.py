"""What would have become of recorded pods: placed anew by the extender's own code, or by a rule, and then moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from extender.cluster import Cluster
from extender.settings import Settings
from extender.state.node_report import Report
from extender.state.node_view import NodeView
from extender.state.pods import Changes, PodRow
from extender.traffic.known import ClusterTraffic, TrafficLearning
from extender.views.plan import plan
from numakin.kubectl.recordings.recording import Recording
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.problem import Workload
from numakin.placement.plan.rebalance import Board
from numakin.placement.state.occupancy import Occupancy, Reservation, fingerprint

Place = tuple[str, NumaSet]
PlacesByPod = Mapping[str, Place]
"""By pod uid, node and NUMA nodes."""

Pairs = Mapping[tuple[str, str], float]
"""By two pods' uids, what their talk costs when it crosses: nanoseconds a second."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to place the pods. numa, node: shares of the traffic inside one NUMA node, and inside one node. placed:
    pods that found room. moved: members that were moved afterwards.
    """

    name: str
    numa: float
    node: float
    placed: int
    moved: int = 0


def learned(recording: Recording) -> tuple[ClusterTraffic, Pairs]:
    """What the extender makes of the recorded traffic, and the pods' pairs. Nodes were recorded until the same moment,
    each from as long before as its windows last.
    """
    seconds: dict[str, float] = defaultdict(float)
    for node, window in recording.windows:
        seconds[node] += window.seconds
    now = max(seconds.values(), default=0.0)
    learning = TrafficLearning()
    learning.apply(Changes(rows=recording.pods, whole=True), 0.0)
    clocks = {node: now - own for node, own in seconds.items()}
    for node, window in recording.windows:
        clocks[node] += window.seconds
        learning.receive(node, window.flows, clocks[node])
    return learning.known(now), learning.graph.pods(now).weights()


def ways(recording: Recording, machines: Mapping[str, Machine]) -> list[Way]:
    """As it was, then what else might have been. machines: in place of the recorded ones."""
    known, pairs = learned(recording)
    uids = {pod.uid for pod in recording.pods}
    pairs = {pair: weight for pair, weight in pairs.items() if uids.issuperset(pair)}
    results = []
    if machines == recording.machines:
        was = {pod.uid: (pod.node, recording.places[pod.uid]) for pod in recording.pods if pod.uid in recording.places}
        results += _with_moves("as recorded", recording, machines, was, pairs)
    results += _with_moves("numakin, new to it", recording, machines, _scored(recording, machines, None), pairs)
    results += _with_moves("numakin, knowing it", recording, machines, _scored(recording, machines, known), pairs)
    for name, choose in (("lowest NUMA node that fits", min), ("emptiest NUMA node", None)):
        places = _by_rule(recording.pods, machines, choose)
        results.append(_way(name, places, pairs))
    return results


def _with_moves(
    name: str, recording: Recording, machines: Mapping[str, Machine], places: PlacesByPod, pairs: Pairs
) -> list[Way]:
    moved, count = _moved(recording.pods, machines, places, pairs)
    after = _way(f"{name}, then moves", moved, pairs)
    return [_way(name, places, pairs), *([replace(after, moved=count)] if count else [])]


def _way(name: str, places: PlacesByPod, pairs: Pairs) -> Way:
    total = sum(pairs.values())
    numa = node = 0.0
    for (pod, peer), weight in pairs.items():
        here, there = places.get(pod), places.get(peer)
        if here is None or there is None or here[0] != there[0]:
            continue
        node += weight
        numa += weight if here[1] == there[1] and len(here[1]) == 1 else 0.0
    return Way(name, numa / total if total else 0.0, node / total if total else 0.0, len(places))


def _scored(recording: Recording, machines: Mapping[str, Machine], known: ClusterTraffic | None) -> PlacesByPod:
    """One after the other by the extender, on machines without other pods."""
    cluster = Cluster(Settings(), clock=lambda: 0.0)
    for name, machine in machines.items():
        cluster.connected(name)
        cluster.reported(NodeView(name, "replay", "", machine), Report(1, 0, fingerprint((), ()), ()))
    if known is not None:
        cluster.learned(known)
    newcomers = [replace(pod, node="", phase="Pending") for pod in recording.pods]
    answers = plan(cluster, [(newcomers, None)])["pods"]
    return {
        pod.uid: (answer["node"], NumaSet.parse(answer["numa_nodes"]))
        for pod, answer in zip(recording.pods, answers, strict=True)
        if answer["node"] is not None
    }


def _by_rule(
    pods: Sequence[PodRow], machines: Mapping[str, Machine], choose: Callable[[Sequence[int]], int] | None
) -> PlacesByPod:
    """On the nodes where they were, or in turn where those are not among the machines; None: the emptiest."""
    names, places = sorted(machines), dict[str, Place]()
    free = {
        name: {numa_node.id: 1000 * len(numa_node.cpus) for numa_node in machine.numa_nodes}
        for name, machine in machines.items()
    }
    for at, pod in enumerate(pods):
        node = pod.node if pod.node in machines else names[at % len(names)]
        room = [numa_node for numa_node, milli in free[node].items() if milli >= pod.demand.cpu_milli]
        if room:
            numa_node = choose(room) if choose else max(room, key=lambda numa_node: (free[node][numa_node], -numa_node))
            free[node][numa_node] -= pod.demand.cpu_milli
            places[pod.uid] = node, NumaSet.of((numa_node,))
    return places


def _moved(
    pods: Sequence[PodRow], machines: Mapping[str, Machine], places: PlacesByPod, pairs: Pairs
) -> tuple[dict[str, Place], int]:
    """After every move that pays, node by node, as the enforcers' observers find them; and how many members moved."""
    after, count = dict(places), 0
    for node, machine in machines.items():
        here = [pod for pod in pods if pod.uid in places and places[pod.uid][0] == node]
        reservations = {
            pod.uid: Reservation(pod.uid, pod.uid, "", places[pod.uid][1], pod.demand, workload=pod.uid) for pod in here
        }
        workloads = [Workload(pod.uid, pod.demand, 1) for pod in here]
        occupancy = Occupancy().on(machine)
        for reservation in reservations.values():
            occupancy = occupancy.with_reservation(reservation)
        members = {uid: uid for uid in reservations}
        weights = {pair: weight for pair, weight in pairs.items() if reservations.keys() >= {*pair}}
        movable = [pod.uid for pod in here if pod.annotations.get("move.numakin.io") != "never"]
        board = Board.of(machine, occupancy, members, workloads, weights, movable=movable)
        for relocation in (relocation for step in board.steps(len(here)) for relocation in step):
            after[relocation.reservation] = node, relocation.target
            count += 1
    return after, count
