"""Some nodes as rooms: their NUMA nodes with what is taken of them, the pods in them, and the traffic between these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nlargest

from extender.scoring.node_table import NodeState
from extender.views.held import held
from extender.views.page import Row
from extender.views.page.scene import Line, Scene
from numakin.placement.state.pools import is_hot

MOST_ROOMS = 48
"""Nodes of one answer."""

MOST_LINES = 600
"""Lines of one answer, the heaviest; `lines_known` says how many there are."""


def rooms(scene: Scene, nodes: Sequence[str]) -> Row:
    """Of the named nodes those that are known, in their order, `MOST_ROOMS` at most."""
    by_name = {state.view.name: state for state in scene.picture.nodes}
    states = [by_name[name] for name in dict.fromkeys(nodes) if name in by_name][:MOST_ROOMS]
    members = {pod for state in states for pod in state.view.index.member_pods}
    known = {line.pods: line for pod in members for line in scene.lines_of.get(pod, ())}
    heaviest = nlargest(MOST_LINES, known.values(), key=lambda line: (line.bytes, line.pods))
    return {
        "nodes": [_room(state, scene) for state in states],
        "lines": [_line(line, members, scene) for line in heaviest],
        "lines_known": len(known),
    }


def _room(state: NodeState, scene: Scene) -> Row:
    view = state.view
    return {
        "name": view.name,
        "machine": view.machine.name,
        "numa_nodes": numa_rows(state),
        "pods": [_pod(pod, state, scene) for pod in sorted(view.index.member_pods)],
    }


def numa_rows(state: NodeState) -> list[Row]:
    """CPU in millicores, memory in bytes; None where the node has not reported it. held, kept: as `Held` has them."""
    machine, occupancy = state.view.machine, state.view.occupancy
    room = held(state.view)
    cpu, memory, live = occupancy.cpu_load(machine), occupancy.memory_load(machine), occupancy.live
    exclusive = occupancy.exclusive
    return [
        {
            "id": node.id,
            "cpus": str(node.cpus),
            "cpu": 1000 * len(node.cpus),
            "cpu_requested": cpu[node.id],
            "cpu_used": live.used_cpu.get(node.id),
            "cpu_held": room.cpu[node.id],
            "cpu_kept": room.kept[node.id],
            "exclusive": len(exclusive & node.cpus),
            "memory": node.memory,
            "memory_requested": memory[node.id],
            "memory_held": room.memory[node.id],
            "memory_free": live.free_memory.get(node.id),
            "stalled": live.stalled.get(node.id),
            "hot": is_hot(occupancy, node.cpus.mask),
        }
        for node in machine.numa_nodes
    ]


def _pod(uid: str, state: NodeState, scene: Scene) -> Row:
    occupancy = state.view.occupancy
    keys = occupancy.directory.by_pod.get(uid, ())
    reservations = [occupancy.reservations[key] for key in keys]
    exclusive = sum(occupancy.own_of(key).bit_count() for key in keys)
    return {
        "uid": uid,
        "pod": scene.name(uid),
        "group": scene.group_of.get(uid),
        "workload": scene.workload(uid),
        "numa_nodes": list(scene.places[uid].numa_nodes),
        "cpu": sum(reservation.demand.cpu_milli for reservation in reservations),
        "memory": sum(reservation.demand.memory for reservation in reservations),
        "exclusive": exclusive,
        "let_out": sorted({node for reservation in reservations for node in reservation.let_out}),
        "expected": uid not in state.view.index.pods,
    }


def _line(line: Line, here: Iterable[str], scene: Scene) -> Row:
    """elsewhere: the node of the end that is in none of these rooms; None when both are here."""
    outside = [pod for pod in line.pods if pod not in here]
    return {
        "pods": line.pods,
        "bytes": round(line.bytes, 1),
        "messages": round(line.messages, 2),
        "reach": line.reach,
        "elsewhere": scene.places[outside[0]].node if outside else None,
    }
