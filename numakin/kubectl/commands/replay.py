"""`replay`: what if: recorded pods placed anew by numakin or by a rule, under another policy, on other machines.

Placed one after the other, as they were created, by the code that the extender runs; then with every move that pays.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from numakin.compare.options import whole
from numakin.kubectl.errors import UsageError
from numakin.kubectl.output import FORMATS, percent, show, table
from numakin.kubectl.session import Session
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine, NumaNode
from numakin.process.log import to_stderr

if TYPE_CHECKING:
    from numakin.kubectl.recordings.recording import Recording
    from numakin.kubectl.recordings.replaying import Way

NAME = "replay"
EXAMPLES = """\
examples:
  kubectl numakin replay traffic.jsonl
  kubectl numakin replay traffic.jsonl --policy single-numa-node
  kubectl numakin replay traffic.jsonl --machine 8x16 --nodes 2     two nodes of 8 NUMA nodes with 16 CPUs each

Shares are of the traffic between the recorded pods, weighed by what crossing would cost. It needs no cluster.
"""

POLICIES = ("best-effort", "restricted", "single-numa-node", "none")
GIB_OF_A_CPU = 4
"""Memory of a made-up machine: GiB for each CPU."""


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("file", type=Path, metavar="FILE", help="that `kubectl numakin record` wrote")
    own.add_argument("--policy", choices=POLICIES, help="in place of the pods' own policy")
    own.add_argument(
        "--machine", type=_shape, metavar="NxC", help="N NUMA nodes with C CPUs each, in place of the recorded"
    )
    own.add_argument(
        "--nodes", type=whole(1, 1_000), metavar="N", help="how many of --machine (default: as many as recorded)"
    )
    own.add_argument("-o", "--output", choices=FORMATS, default="table", help="(default: table)")


def run(given: argparse.Namespace, _session: Session) -> int:
    # The extender's own modules: a second that no other command should take, and packages that no other imports.
    try:
        from numakin.kubectl.recordings.recording import read  # noqa: PLC0415
        from numakin.kubectl.recordings.replaying import ways  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"replay places pods by the extender's own code, and {missing.name} is not installed: "
            "pip install 'numakin[extender]'"
        ) from missing

    # They log of pods that were placed on paper alone, which must not stand before the answer.
    to_stderr("warning", "text")
    recording = read(given.file)
    if given.nodes and not given.machine:
        raise UsageError("--nodes belongs to --machine")
    if given.policy:
        recording = _with_policy(recording, given.policy)
    machines = recording.machines
    if given.machine:
        names = [f"node-{at + 1}" for at in range(given.nodes or len(recording.machines))]
        machines = {name: _machine(name, *given.machine) for name in names}
    if not machines:
        raise UsageError(f"{given.file}: it has no machine: give --machine and --nodes")
    results = ways(recording, machines)
    show(
        {"pods": len(recording.pods), "ways": [asdict(way) for way in results]}, given.output, lambda: [_table(results)]
    )
    return 0


def _table(results: list[Way]) -> object:
    rows = table(
        "placed by", "inside one numa node", "inside one node", "placed", "moved",
        right=("inside one numa node", "inside one node", "placed", "moved"),
    )  # fmt: skip
    for way in results:
        rows.add_row(way.name, percent(way.numa), percent(way.node), str(way.placed), str(way.moved))
    return rows


def _with_policy(recording: Recording, policy: str) -> Recording:
    pods = tuple(replace(pod, annotations={**pod.annotations, "policy.numakin.io": policy}) for pod in recording.pods)
    return replace(recording, pods=pods)


def _machine(name: str, numa_nodes: int, cpus: int) -> Machine:
    distances = [
        {other: 10 if other == numa_node else 20 for other in range(numa_nodes)} for numa_node in range(numa_nodes)
    ]
    return Machine(
        numa_nodes=tuple(
            NumaNode(
                numa_node,
                CpuSet.of(range(numa_node * cpus, (numa_node + 1) * cpus)),
                cpus * GIB_OF_A_CPU << 30,
                distances[numa_node],
            )
            for numa_node in range(numa_nodes)
        ),
        cores=tuple(CpuSet.of((cpu,)) for cpu in range(numa_nodes * cpus)),
        name=name,
    )


def _shape(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)x(\d+)", text)
    if match is None or not (1 <= int(match[1]) <= 64 and 1 <= int(match[2]) <= 256):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed: NUMA nodes x CPUs, up to 64x256, as 4x32")
    return int(match[1]), int(match[2])
