"""What users write and what numakin writes for itself: annotations, groups' specs, quantities, the learned text."""

from __future__ import annotations

import json
from collections.abc import Iterator

from extender.kube.objects import groupspec
from extender.traffic.learned import MOST_BYTES, read, written
from numakin.placement.model import names
from numakin.placement.model.cpuset import LARGEST_ID, CpuSet
from numakin.placement.model.demand import from_resources
from numakin.placement.model.errors import PlacementError
from numakin.placement.optin import parsing
from numakin.placement.traffic.graph import Costs
from tests.fuzz.target import Target, must


def learned(data: bytes) -> None:
    """Never raises; what is taken can be written, within its bound, and is read again as it was written."""
    taken = read(data.decode(errors="replace"), "shop/cart")
    text = written(taken, Costs())
    must(len(text.encode()) <= MOST_BYTES, "no text is over its bound")
    must(all(map(names.is_workload, taken.members)), "members are workloads")
    again = read(text, "shop/cart")
    must(written(again, Costs()) == text, "what is written is read alike")


def pod_annotations(data: bytes) -> None:
    """KEY=VALUE a line: never raises, and names few problems, in short."""
    lines = data.decode(errors="replace").split("\n")
    given = {key: value for key, _, value in (line.partition("=") for line in lines)}
    opted_in = parsing.parse("shop", given, "main")
    must((opted_in is not None) <= parsing.opted_in(given), "nobody is opted in without the key")
    problems = parsing.problems("shop", given, ("main",))
    must(len(str(problems)) < 100_000, "problems are short")
    parsing.bad_values("shop", given, "main")


def spec(data: bytes) -> None:
    """Any JSON as a spec: never raises."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    _, problems = groupspec.read("shop", value)
    must(all(len(problem) < 10_000 for problem in problems), "problems are short")


def ids(data: bytes) -> None:
    """A set of ids in the kernel's list format: PlacementError, or a set that is written and read alike."""
    try:
        cpus = CpuSet.parse(data.decode(errors="replace"))
    except PlacementError:
        return
    must(CpuSet.parse(str(cpus)) == cpus, "what is written is read alike")
    must(not cpus or max(cpus) <= LARGEST_ID, "no id is over the bound")


def quantities(data: bytes) -> None:
    """Amounts of a pod, one a line: PlacementError, or a demand that is not negative."""
    lines = data.decode(errors="replace").split("\n")
    resources = dict(zip(("cpu", "memory", "hugepages-2Mi"), lines, strict=False))
    try:
        demand = from_resources(resources, resources)
    except PlacementError:
        return
    must(min(demand.cpu_milli, demand.memory, *demand.hugepages.values()) >= 0, "no demand is negative")


def _learned() -> Iterator[bytes]:
    cart, db = "shop/Deployment/cart", "shop/StatefulSet/db"
    text = {
        "version": 1,
        "names": [cart, db],
        "members": [0],
        "edges": [[0, 1, "tcp", 52000, 310.5], [1, 0, "shm", 1, 2]],
    }
    yield json.dumps(text).encode()
    yield json.dumps(text | {"members": []}, separators=(",", ":")).encode()


def _annotations() -> Iterator[bytes]:
    yield b"group.numakin.io=cart\ncpus.numakin.io=exclusive\nmemory.numakin.io=strict\nsize.numakin.io=10"
    yield b"group.numakin.io/pod=auto\npolicy.numakin.io/container.main=single-numa-node\nmove.numakin.io=never"
    yield b"group.numakin.io=cart\nscope.numakin.io=container\npool.numakin.io=reclaimed"
    yield b'katalyst.kubewharf.io/memory_enhancement={"numa_binding":"true","numa_exclusive":"true"}'


def _specs() -> Iterator[bytes]:
    priorities = [{"workload": "Deployment/cart", "priority": 7}]
    yield json.dumps({"policy": "best-effort", "size": 12, "priorities": priorities}).encode()


TARGETS = (
    Target("learned-text", learned, _learned),
    Target("annotations", pod_annotations, _annotations),
    Target("group-spec", spec, _specs),
    Target("id-lists", ids, lambda: [b"0-3,8,10-11", b"0-10:2/4", b"", b"7"]),
    Target("quantities", quantities, lambda: [b"500m\n1Gi\n4Mi", b"2\n1e9\n0", b"0.1\n128974848\n"]),
)
