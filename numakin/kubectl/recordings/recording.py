"""A recording as it is read, into the extender's own values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from extender.kube.rows import PodObject, PodRows
from extender.state.pods import PodRow
from numakin.kubectl.errors import UsageError
from numakin.kubectl.recordings.writing import VERSION
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.errors import PlacementError
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.traffic.window import BadRecording, Window


@dataclass(frozen=True, slots=True)
class Recording:
    """machines: by node. pods: opted in, in the order in which they were created. places: by pod uid, the NUMA nodes
    on which it was. windows: with the node that saw each.
    """

    machines: Mapping[str, Machine]
    pods: tuple[PodRow, ...]
    places: Mapping[str, NumaSet]
    windows: tuple[tuple[str, Window], ...]


def read(path: Path) -> Recording:
    """UsageError, with the line, when it is none."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as bad:
        raise UsageError(f"{path}: {getattr(bad, 'strerror', None) or bad}") from bad
    first, windows = [], []
    for number, text in enumerate(lines or [""], start=1):
        try:
            first.append(_first(text)) if number == 1 else windows.append(_window(text))
        except _UNREADABLE as bad:
            fault = f"{bad.args[0]!r} is missing" if isinstance(bad, KeyError) else str(bad).splitlines()[0]
            why = f"not what `kubectl numakin record` writes: {fault}"
            raise UsageError(f"{path}, line {number}: {why}") from bad
    return replace(first[0], windows=tuple(windows))


_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, PlacementError, BadRecording)


def _first(text: str) -> Recording:
    content = json.loads(text)
    if content["numakin_recording"] != VERSION:
        raise ValueError(f"version {content['numakin_recording']!r}; this program reads version {VERSION}")
    rows = PodRows()
    pods = tuple(rows.row(msgspec.convert(pod, PodObject)) for pod in sorted(content["pods"], key=_age))
    machines = {str(node["node"]): machine(node) for node in content["nodes"]}
    return Recording(
        machines, pods, {str(uid): NumaSet.parse(numa_nodes) for uid, numa_nodes in content["places"].items()}, ()
    )


def _window(text: str) -> tuple[str, Window]:
    row = json.loads(text)
    return str(row["node"]), Window.from_json(json.dumps(row["window"]))


def machine(node: Mapping[str, Any]) -> Machine:
    """Of a node as /api/v1/nodes has it. Each CPU counts as a core of its own."""
    rows = node["numa_nodes"]
    ids = [int(row["id"]) for row in rows]
    numa_nodes = tuple(
        NumaNode(
            int(row["id"]), CpuSet.parse(row["cpus"]), int(row["memory"]), dict(zip(ids, row["distances"], strict=True))
        )
        for row in rows
    )
    cpus = sorted(cpu for numa_node in numa_nodes for cpu in numa_node.cpus)
    return Machine(numa_nodes=numa_nodes, cores=tuple(CpuSet.of((cpu,)) for cpu in cpus), name=str(node["node"]))


def _age(pod: Mapping[str, Any]) -> tuple[str, str]:
    return str(pod["metadata"].get("creationTimestamp") or ""), str(pod["metadata"]["name"])
