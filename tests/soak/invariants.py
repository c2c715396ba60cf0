"""What must hold whatever failed, read from the runtime's side. Each broken one is a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from numakin.placement.model.cpuset import CpuSet
from tests.soak.nodes import Node, status
from tests.soak.pods import Kind, Running
from tests.soak.processes import naming


class Invariant(Enum):
    """The columns of the report."""

    FAILED = "containers failed"
    TOUCHED = "un-opted containers touched"
    TWICE = "CPUs exclusive twice"
    MISPLACED = "members elsewhere than allocated"
    OUTLIVED = "processes that outlive their supervisor"
    UNSETTLED = "did not come back"
    GROWN = "memory or descriptors grown"


@dataclass(frozen=True, slots=True)
class Broken:
    invariant: Invariant
    sentence: str


def exclusive(node: Node, containers: Iterable[Running]) -> Iterator[Broken]:
    """At any moment: those that have CPUs of their own share none among them."""
    own = {container.spec.name: cpus for container in containers if (cpus := own_cpus(node, container))}
    for (name, cpus), (other, others) in combinations(own.items(), 2):
        if twice := cpus & others:
            yield Broken(Invariant.TWICE, f"{node.name}: CPUs {twice} are exclusive to {name} and to {other}")


def own_cpus(node: Node, container: Running) -> CpuSet:
    """Those that it alone has; empty while it runs unpinned."""
    cpus = node.cpus(container.id)
    return cpus if container.spec.kind is Kind.EXCLUSIVE and len(cpus) == container.spec.cpus else CpuSet()


def untouched(node: Node, containers: Iterable[Running]) -> Iterator[Broken]:
    """At any moment: who has not opted in has its own CPUs, and no annotation of ours."""
    for container in containers:
        if not container.spec.kind.member:
            cpus, own = node.cpus(container.id), node.own(container.spec)
            if cpus != own or node.marked(container.id):
                what = f"{container.spec.name} has CPUs {cpus or 'unset'}, where its own are {own or 'unset'}"
                yield Broken(Invariant.TOUCHED, f"{node.name}: {what}")


def settled(node: Node, containers: list[Running]) -> Iterator[Broken]:
    """After the fault: no process is left over, every member is pinned to one NUMA node, exclusive CPUs are nobody
    else's, and the enforcer says of each what its runtime shows.
    """
    if orphans := naming(node.run_dir) - set(node.enforcer.processes().values()):
        yield Broken(Invariant.OUTLIVED, f"{node.name}: processes {sorted(orphans)} have no supervisor")
    shown = {container["id"]: container for container in status(node).get("containers", ())}
    members = [container for container in containers if container.spec.kind.member]
    for container in members:
        cpus, name = node.cpus(container.id), container.spec.name
        if not any(cpus and cpus <= numa_node.cpus for numa_node in node.machine.numa_nodes):
            yield Broken(Invariant.MISPLACED, f"{node.name}: {name} has CPUs {cpus or 'without a pin'}")
        allocated = CpuSet.parse(shown[container.id]["cpus"]) if container.id in shown else cpus
        if allocated and allocated != cpus:
            yield Broken(Invariant.MISPLACED, f"{node.name}: {name} has CPUs {cpus}, and was allocated {allocated}")
        if own := own_cpus(node, container):
            for other in members:
                if other is not container and (twice := own & node.cpus(other.id)):
                    yield Broken(
                        Invariant.TWICE, f"{node.name}: CPUs {twice} of {name} are also those of {other.spec.name}"
                    )
        elif container.spec.kind is Kind.EXCLUSIVE:
            yield Broken(
                Invariant.MISPLACED, f"{node.name}: {name} asked for {container.spec.cpus} CPUs of its own: {cpus}"
            )
