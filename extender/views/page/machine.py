"""One node: its hardware, who has which CPUs, how its enforcer is, and what to do about what is wrong."""

from __future__ import annotations

from dataclasses import asdict

from extender.scoring.node_table import NodeState
from extender.state.enforcer_health import EnforcerHealth
from extender.views.page import Row
from extender.views.page.overview import condition
from extender.views.page.rooms import numa_rows
from extender.views.page.scene import Reach, Scene
from extender.views.page.warnings import warnings
from extender.views.readout import IsLive, cache_domains

MOST_CONTAINERS = 1_000


def node(scene: Scene, name: str, live: IsLive, health: EnforcerHealth | None) -> Row | None:
    """None when no enforcer has reported it. health: None where the enforcer has not reported it."""
    state = next((state for state in scene.picture.nodes if state.view.name == name), None)
    if state is None:
        return None
    view = state.view
    machine = view.machine
    traffic = scene.node_traffic.get(name)
    return {
        "name": name,
        "machine": machine.name,
        "state": condition(state, live=live(state)),
        "numa_nodes": [
            {
                **row,
                "distances": [numa_node.distances[peer.id] for peer in machine.numa_nodes],
                "isolated": str(numa_node.isolated),
                "hugepages": sorted(numa_node.hugepages.items()),
                "withheld": numa_node.withheld,
                "cache_domains": cache_domains(machine, view.occupancy, numa_node.id),
            }
            for row, numa_node in zip(numa_rows(state), machine.numa_nodes, strict=True)
        ],
        "sockets": [str(cpus) for cpus in machine.sockets],
        "caches": [str(cpus) for cpus in machine.caches],
        "cores": [str(cpus) for cpus in machine.cores],
        "reserved": str(view.occupancy.reserved),
        "containers": _containers(state, scene),
        "containers_known": len(view.occupancy.allocations),
        "expected": _expected(state, scene),
        "traffic": [round(traffic[reach]) for reach in Reach] if traffic else None,
        "enforcer": _enforcer(state, health),
        "warnings": warnings(state, health, scene.picture.faults.get(name, 0)),
    }


def _expected(state: NodeState, scene: Scene) -> list[Row]:
    """The pods for which room is held here until they are reported."""
    return [
        {
            "uid": uid,
            "pod": scene.name(uid),
            "group": scene.group_of.get(uid),
            "numa_nodes": list(assumption.numa_nodes),
            "bound": assumption.bound,
        }
        for uid, assumption in list(state.view.assumed.items())[:MOST_CONTAINERS]
    ]


def _containers(state: NodeState, scene: Scene) -> list[Row]:
    """Those with CPUs of their own first."""
    view = state.view
    allocations = sorted(
        view.occupancy.allocations.values(),
        key=lambda allocation: (not allocation.exclusive, allocation.pod, allocation.name),
    )
    return [
        {
            "pod": scene.picture.names.get(allocation.pod),
            "group": scene.group_of.get(allocation.pod),
            "container": allocation.name,
            "cpus": str(allocation.cpus),
            "mems": str(allocation.mems),
            "exclusive": str(allocation.exclusive),
            "externally_managed": allocation.externally_managed,
            "member": allocation.pod in view.index.member_pods,
        }
        for allocation in allocations[:MOST_CONTAINERS]
    ]


def _enforcer(state: NodeState, health: EnforcerHealth | None) -> Row:
    view = state.view
    return {
        "connected": state.connected,
        "registered": view.registered,
        "age_seconds": round(state.age, 1),
        "version": view.version,
        "session": view.session,
        "generation": view.generation,
        "health": asdict(health) if health else None,
    }
