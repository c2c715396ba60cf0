"""The state as people, tools and Prometheus read it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, islice
from typing import Any

from extender.picture import Figures, Picture
from extender.planning.group_planner import Plans
from extender.scoring.node_table import NodeState
from extender.state.columns.free_room import NumaPlace
from extender.state.groups import Member, group_row
from extender.views.held import held
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine
from numakin.placement.state.occupancy import Occupancy
from numakin.placement.state.pools import is_hot

IsLive = Callable[[NodeState], bool]
Gauge = tuple[str, str, str, Mapping[str, float]]
"""Name, help, the one label's name (empty: none), and the value by the label's value."""

MOST_ROWS = 500
"""Nodes or groups of one answer: what kubectl asks the API server for at a time."""

MOST_MEMBERS = 5000
"""Of the groups of one answer, unless its first has more: some 700 kB."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """The rows of one answer. remaining: how many come after them. last: the name of the last one told."""

    rows: Sequence[dict[str, Any]]
    remaining: int
    last: str

    @property
    def rest(self) -> dict[str, Any]:
        """That there is more, and how to ask for it; empty where all has been told."""
        return {"continue": self.last, "remaining": self.remaining} if self.remaining else {}


def nodes(picture: Picture, live: IsLive, limit: int = MOST_ROWS, after: str = "") -> ListPage:
    """The first by name, after the node of that name."""
    there = [node_state for node_state in picture.nodes if node_state.view.name > after]
    faults = picture.faults
    rows = [
        _node(node_state, live=live(node_state)) | {"weighing_faults": faults.get(node_state.view.name, 0)}
        for node_state in there[:limit]
    ]
    return ListPage(rows, len(there) - len(rows), rows[-1]["node"] if rows else "")


def groups(picture: Picture, limit: int = MOST_ROWS, after: str = "") -> ListPage:
    """The first by name, after the group of that name; fewer than limit where they have MOST_MEMBERS."""
    there = {group: theirs for group, theirs in members(picture).items() if group > after}
    up_to = accumulate(len(theirs) for theirs in there.values())
    fitting = max(1, sum(count <= MOST_MEMBERS for count in up_to))
    told = islice(there.items(), min(limit, fitting))
    rows = [group_row(group, theirs, picture.names) for group, theirs in told]
    return ListPage(rows, len(there) - len(rows), rows[-1]["group"] if rows else "")


def plans(kept: Plans) -> list[dict[str, Any]]:
    """The reservations that are kept for workloads of whose group pods are still to come; replicas: in all."""
    return [
        {
            "workload": name,
            "reservations": [
                {"node": place.node, "numa_node": place.numa_node, "replicas": replicas}
                for place, replicas in reservations
            ],
        }
        for name, reservations in sorted(kept.items())
    ]


def group_room(places: Mapping[NumaPlace, Demand]) -> list[dict[str, Any]]:
    """What is held for one group's pods that wait for a node."""
    return [
        {
            "node": place.node,
            "numa_node": place.numa_node,
            "cpu_milli": places[place].expected_milli,
            "memory": places[place].memory,
        }
        for place in sorted(places)
    ]


def members(picture: Picture) -> dict[str, list[Member]]:
    """Every group's, in the order of the groups' names."""
    by_group: dict[str, list[Member]] = defaultdict(list)
    for node_state in picture.nodes:
        reported = node_state.view.index.pods
        for reservation in node_state.view.index.members:
            workload = picture.workloads.get(reservation.pod, "")
            if group := reservation.group or picture.groups.get(workload):
                by_group[group].append(Member(node_state.view.name, reservation, reservation.pod not in reported))
    return dict(sorted(by_group.items()))


def single(name: str, text: str, value: float) -> Gauge:
    """One series, without a label."""
    return name, text, "", {"": value}


def gauges(figures: Figures, live: IsLive) -> Iterator[Gauge]:
    alive = [node_state for node_state in figures.nodes if live(node_state)]
    bound, tried = sum(pod.bound for pod in figures.assumed), sum(pod.private for pod in figures.assumed)
    yield (
        "numakin_extender_nodes",
        "Nodes whose enforcer has reported, by whether it still does.",
        "live",
        {"true": len(alive), "false": len(figures.nodes) - len(alive)},
    )
    yield single(
        "numakin_extender_skewed_enforcers",
        "Enforcers of another report format than this extender's: their fingerprints are not compared.",
        sum(node_state.view.skewed for node_state in alive),
    )
    yield single(
        "numakin_extender_powerless_nodes",
        "Live nodes that score 0: another owner sets the cpusets of at least half of the containers that opted in.",
        sum(node_state.view.yielded.powerless for node_state in alive),
    )
    yield (
        "numakin_extender_assumed_pods",
        "Pods that hold room until their enforcer reports them, by whether they are bound.",
        "bound",
        {"true": bound, "false": len(figures.assumed) - bound - tried},
    )
    yield single(
        "numakin_extender_tried_pods",
        "Pods of gangs that kube-scheduler tries: they hold room for their own gang alone, until one of it is bound.",
        tried,
    )
    yield single(
        "numakin_extender_report_age_seconds",
        "The longest silence of an enforcer that still counts as live.",
        max((node_state.age for node_state in alive), default=0.0),
    )
    yield single(
        "numakin_extender_expired_assumptions_total",
        "Pods that held room in vain since the start: bound elsewhere, unseen, or never bound.",
        figures.expired,
    )
    yield (
        "numakin_extender_bindings_total",
        "Pods that were scored here, by whether they were bound to the node that they were assumed on.",
        "went",
        figures.bindings,
    )
    yield (
        "numakin_extender_unscored_total",
        "Pods that were bound without kube-scheduler having asked for scores, by reason; by the replica that it asks.",
        "reason",
        figures.unscored,
    )
    yield single(
        "numakin_extender_held_cpus",
        "CPUs that are held for groups whose pods wait for a node.",
        figures.held_milli / 1000,
    )
    yield single(
        "numakin_extender_given_back_holds_total",
        "How often room was given back that was held for a group of which nothing moved any more.",
        figures.given_back,
    )
    yield single(
        "numakin_extender_group_splits_total",
        "Pods bound to a node without members of their group, though an offered node with members had room.",
        figures.splits,
    )
    yield (
        "numakin_extender_weighing_faults_total",
        "How often a node could not be weighed, for a fault of numakin's; it then scores 0.",
        "node",
        figures.faults,
    )


def _node(node_state: NodeState, *, live: bool) -> dict[str, Any]:
    view = node_state.view
    machine, occupancy = view.machine, view.occupancy
    cpu, memory, figures = occupancy.cpu_load(machine), occupancy.memory_load(machine), occupancy.live
    room = held(view)
    return {
        "node": view.name,
        "machine": machine.name,
        "live": live,
        "connected": node_state.connected,
        "registered": view.registered,
        "yielded": asdict(view.yielded),
        "powerless": view.yielded.powerless,
        "age_seconds": round(node_state.age, 3),
        "version": view.version,
        "report_format": view.report_format,
        "skewed": view.skewed,
        "session": view.session,
        "generation": view.generation,
        "fingerprint": f"{view.fingerprint:016x}",
        "pods": len(view.index.pods),
        "containers": len(view.reported.allocations),
        "assumed": sorted(view.assumed),
        "free_devices": [
            {"resource": resource, "numa_nodes": str(NumaSet(mask)), "free": free}
            for (resource, mask), free in sorted(figures.devices.items())
        ],
        "numa_nodes": [
            {
                "id": node.id,
                "cpus": str(node.cpus),
                "memory": node.memory,
                "distances": [node.distances[peer.id] for peer in machine.numa_nodes],
                "requested_cpu_milli": round(cpu[node.id]),
                "requested_memory": round(memory[node.id]),
                "held_cpu_milli": room.cpu[node.id] + room.kept[node.id],
                "free_memory": figures.free_memory.get(node.id),
                "free_hugepages": {size: figures.free_hugepages.get((node.id, size)) for size in node.hugepages},
                "used_cpu_milli": figures.used_cpu.get(node.id),
                "stalled": figures.stalled.get(node.id),
                "hot": is_hot(occupancy, node.cpus.mask),
                "cache_domains": cache_domains(machine, occupancy, node.id),
            }
            for node in machine.numa_nodes
        ],
    }


def cache_domains(machine: Machine, occupancy: Occupancy, numa_node: int) -> list[dict[str, Any]]:
    """Those within which a member is kept."""
    within = occupancy.directory.within
    return [
        {
            "cpus": str(CpuSet(domain)),
            "requested_cpu_milli": within[domain],
            "hot": is_hot(occupancy, domain),
        }
        for domain in machine.cache_domains[numa_node]
        if within.get(domain)
    ]
