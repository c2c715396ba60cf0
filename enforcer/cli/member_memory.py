"""How much of each pod's memory lies away from its NUMA nodes. The command-line program reads it from the cgroups
itself, so that no process of the enforcer takes time for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.errors import MachineError
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.state.memory_places import MemoryPlaces, size


def rows(containers: Iterable[Mapping[str, Any]], procfs: Path) -> list[dict[str, Any]]:
    """A row for each pod with a pinned container whose cgroup can be read, as JSON values; sizes in bytes.

    containers: rows of the hook's answer. procfs: where the node's /proc is mounted.
    """
    try:
        tree = CgroupTree.discover(procfs)
    except MachineError:
        return []
    pods: dict[str, tuple[NumaSet, MemoryPlaces]] = {}
    for container in containers:
        by_node = _read(tree, container.get("cgroup", ""))
        if by_node is not None:
            home = NumaSet.parse(container["home_mems"])
            homes, places = pods.get(container["pod"], (NumaSet(), MemoryPlaces()))
            pods[container["pod"]] = homes | home, places + MemoryPlaces.of(by_node, home)
    return [
        {"pod": pod, "home_mems": str(homes), "bytes": places.whole, "away_bytes": places.away}
        for pod, (homes, places) in pods.items()
    ]


MOST_NAMED = 5
"""Pods with memory away from their NUMA nodes that are named unless all are asked for: those with most of it."""


def told(rows: Sequence[Mapping[str, Any]], *, every: bool) -> Iterator[str]:
    """The sum, then the pods with memory away, the most first; with `every` all pods."""
    if not rows:
        return
    whole, away = (sum(row[key] for row in rows) for key in ("bytes", "away_bytes"))
    yield f"memory of {len(rows)} pods: {_of(whole, away)} away from their NUMA nodes"
    most = sorted(rows, key=lambda row: (-row["away_bytes"], row["pod"]))
    named = most if every else [row for row in most if row["away_bytes"]][:MOST_NAMED]
    yield from map(in_words, named)


def in_words(row: Mapping[str, Any]) -> str:
    return f"memory of {row['pod']}: {_of(row['bytes'], row['away_bytes'])} away from NUMA nodes {row['home_mems']}"


def _of(whole: int, away: int) -> str:
    share = f" ({away / whole:.0%})" if away else ""
    return f"{size(whole)}, {size(away)}{share} of it"


def _read(tree: CgroupTree, cgroup: str) -> Mapping[int, int] | None:
    try:
        return tree.memory_by_numa_node(cgroup) if cgroup else None
    except MachineError:  # it has gone meanwhile, or the runtime's path leads nowhere
        return None
