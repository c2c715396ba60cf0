"""The whole cluster in short: a row for each node, a row for each group, and the sums.

Rows are numbered by the version in which they last changed, so that a reader who knows one version is sent only what
has changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from secrets import randbelow
from threading import Lock

from extender.scoring.node_table import NodeState
from extender.state.enforcer_health import EnforcerHealths
from extender.state.groups import Member, locality
from extender.views.group_metrics import NumaNodeSize, possible
from extender.views.group_sums import MemberSum
from extender.views.held import held
from extender.views.page import Row
from extender.views.page.scene import Reach, Scene, Scenes, by_reach
from extender.views.page.shares import inside, shares
from extender.views.readout import IsLive
from numakin.placement.state.pools import is_hot

MOST_GROUPS = 500
"""Group rows, those with most members; `groups_known` says how many there are."""

NO_COLLECTOR = ("none", "off")
"""What an enforcer reports as its collector where no traffic is seen: none works, or none is to be used."""


FIRST = 1 << 52
"""Versions begin anywhere below it, so that none of another extender, one before this or another replica, is taken for
one of its own. JavaScript counts exactly up to twice as far.
"""

MOST_GONE = 1_000
"""Nodes that left and are still named to readers; who has missed more is sent everything."""


class Overview:
    """Thread-safe. live: whether pods that start on a node now would be placed."""

    def __init__(self, scenes: Scenes, live: IsLive, healths: EnforcerHealths) -> None:
        self._scenes, self._live, self._healths = scenes, live, healths
        self._lock = Lock()
        self._scene: Scene | None = None
        self._version = self._oldest = randbelow(FIRST)
        self._rows: dict[str, tuple[int, Row]] = {}
        self._gone: dict[str, int] = {}
        self._sums: Row = {}

    def since(self, version: int) -> Row:
        """What has changed after a version; 0, or one that was never given: everything."""
        scene = self._scenes.current()
        with self._lock:
            if scene is not self._scene:
                with self._scenes.counted():
                    self._take_in(scene)
            if not self._oldest < version <= self._version:
                version = 0
            return {
                "version": self._version,
                "whole": version == 0,
                "nodes": [row for at, row in self._rows.values() if at > version],
                "gone": [node for node, at in self._gone.items() if at > version] if version else [],
                **(self._sums if version < self._version else {}),
            }

    def _take_in(self, scene: Scene) -> None:
        self._scene = scene
        following = self._version + 1
        before = len(self._rows)
        changed = False
        names = set()
        for state in scene.picture.nodes:
            name = state.view.name
            names.add(name)
            row = _node_row(state, scene, live=self._live(state))
            if name not in self._rows or self._rows[name][1] != row:
                self._rows[name] = following, row
                changed = True
        for name in self._rows.keys() - names:
            del self._rows[name]
            self._gone[name] = following
        for name in names & self._gone.keys():
            del self._gone[name]
        while len(self._gone) > MOST_GONE:
            self._oldest = self._gone.pop(next(iter(self._gone)))
        sums = _sums(scene) | {"unobserved": sum(1 for name in names if self._unobserved(name))}
        if changed or len(self._rows) != before or sums != self._sums:
            self._version, self._sums = following, sums

    def _unobserved(self, node: str) -> bool:
        """Whether its enforcer has reported that it sees no traffic."""
        health = self._healths.of(node)
        return health is not None and health.collector in NO_COLLECTOR


def _node_row(state: NodeState, scene: Scene, *, live: bool) -> Row:
    view = state.view
    summary = view.memo.get("page")
    if summary is None:
        summary = view.memo["page"] = _placed(state)
    traffic = scene.node_traffic.get(view.name)
    return {
        **summary,
        "state": condition(state, live=live),
        "traffic": [round(traffic[reach]) for reach in Reach] if traffic else None,
    }


def condition(state: NodeState, *, live: bool) -> str:
    """One of: live, reconnecting (the stream is closed, and its last report still counts), lost (it does not any
    more), unregistered (with the runtime), or silent.
    """
    if live:
        return "live" if state.connected else "reconnecting"
    if not state.connected:
        return "lost"
    return "silent" if state.view.registered else "unregistered"


def _placed(state: NodeState) -> Row:
    """What depends on the view alone; it is kept with the view."""
    view = state.view
    machine, occupancy = view.machine, view.occupancy
    cpu, memory, used = occupancy.cpu_load(machine), occupancy.memory_load(machine), occupancy.live.used_cpu
    room = held(view)
    return {
        "name": view.name,
        "machine": machine.name,
        "numa_nodes": len(machine.numa_nodes),
        "members": len(view.index.member_pods),
        "cpu": [1000 * len(machine.cpus), sum(cpu.values()), sum(used.values()) if used else None],
        "memory": [sum(node.memory for node in machine.numa_nodes), sum(memory.values())],
        "exclusive": len(occupancy.exclusive),
        "held": [sum(room.cpu.values()), sum(room.kept.values())],
        "hot": [node.id for node in machine.numa_nodes if is_hot(occupancy, node.cpus.mask)],
    }


def _sums(scene: Scene) -> Row:
    largest = NumaNodeSize.largest(_room(state) for state in scene.picture.nodes)
    groups = [_group_row(group, scene, largest) for group in scene.groups]
    groups.sort(key=lambda row: (-row["members"], row["group"]))
    traffic = by_reach(iter(scene.lines.values()))
    return {
        "groups": groups[:MOST_GROUPS],
        "groups_known": len(groups),
        "traffic": [round(traffic[reach]) for reach in Reach],
        "share": shares(scene.lines.values()),
        "members": len(scene.places),
    }


def _room(state: NodeState) -> NumaNodeSize:
    """Machines seldom change, and are looked at once for each view."""
    room = state.view.memo.get("room")
    if room is None:
        room = state.view.memo["room"] = NumaNodeSize.of(state.view.machine)
    return room


def _group_row(group: str, scene: Scene, largest: NumaNodeSize) -> Row:
    """largest: of the cluster's NUMA nodes."""
    members = scene.groups[group]
    pods = {member.reservation.pod for member in members}
    places = {(member.node, numa_node) for member in members for numa_node in member.reservation.numa_nodes}
    return {
        "group": group,
        "members": len(pods),
        "nodes": len({node for node, _ in places}),
        "numa_nodes": len(places),
        "share": shares(inside(pods, scene)),
        "together": together(members, largest),
    }


def together(members: Sequence[Member], largest: NumaNodeSize) -> list[float] | None:
    """The shares of pairs of members on one NUMA node: now, and as the group's size allows. None below two."""
    now = locality(members)
    if now is None:
        return None
    demands = [member.reservation.demand for member in members]
    cpu_milli, memory = sum(demand.cpu_milli for demand in demands), sum(demand.memory for demand in demands)
    return [round(now, 4), round(possible(MemberSum({}, len(members), cpu_milli, memory), largest), 4)]
