"""The two things that are held on a machine: a reservation is room on NUMA nodes, an allocation is what a live
container has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import attrgetter, or_
from typing import NamedTuple

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.optin.options import Pool


class Part(NamedTuple):
    """How much of a reservation's demand one of its NUMA nodes carries, relative to the others; millicores, bytes.

    hugepages: page sizes with the bytes in pages of that size.
    """

    numa_node: int
    cpu_milli: int
    memory: int
    hugepages: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room held on NUMA nodes.

    key: the pod's uid, or UID/CONTAINER-NAME where its containers are placed one by one, or a container's id where it
    has not opted in.
    group: NAMESPACE/name, or empty for what has not opted in (and for members whose group is not learned yet).
    parts: how the demand lies on several NUMA nodes; empty: by their number of CPUs. alone: it shares its NUMA nodes
    with no other opted-in pod, those in the reclaimed pool aside. size: members that its group expects, 0: not known.
    workload: NAMESPACE/KIND/NAME of the controller that owns the pod, empty: not known. cache_domain: the CPUs that
    share a cache, within which its containers are kept while they have room; empty: anywhere on its NUMA nodes.
    let_out: the NUMA nodes whose pools they run in meanwhile, as what they are confined to is hot; empty: they are at
    home. The room that is held for them stays where it is.
    """

    key: str
    pod: str
    group: str
    numa_nodes: NumaSet
    demand: Demand
    parts: tuple[Part, ...] = ()
    pool: Pool = Pool.SHARED
    alone: bool = False
    size: int = 0
    workload: str = ""
    cache_domain: CpuSet = CpuSet()
    let_out: NumaSet = NumaSet()

    @property
    def namespace(self) -> str:
        """Empty where neither its workload nor its group is known."""
        return namespace_of(self.workload, self.group)

    @property
    def opted_in(self) -> bool:
        """Whether it is a reservation that was chosen, by its key: what has not opted in is known by its container's
        id.
        """
        return self.key == self.pod or self.key.startswith(self.pod + "/")


@dataclass(frozen=True, slots=True)
class Allocation:
    """What one live container has.

    cpus, mems: empty when not limited by us. exclusive: those of its CPUs that no other container may use.
    externally_managed: another owner sets its CPUs (the kubelet's static policy, another plugin), so that it is never
    updated. open: it is a member that has no home, and runs on all CPUs that no other container has for itself; `cpus`
    is empty where that was all of them when it was placed. stable: its CPUs stay what they are: none of them becomes
    exclusive, and it gets no others. within: those that another owner gave it, of which it has a part, whatever the
    CPUs of its home are; empty: there is no other owner. rounded_up: millicores by which its exclusive CPUs are more
    than its pod's demand has for it.
    """

    container: str
    name: str
    pod: str
    reservation: str
    cpus: CpuSet = CpuSet()
    mems: NumaSet = NumaSet()
    exclusive: CpuSet = CpuSet()
    externally_managed: bool = False
    open: bool = False
    stable: bool = False
    within: CpuSet = CpuSet()
    rounded_up: int = 0

    @property
    def placed(self) -> bool:
        """Whether it has CPUs of a home."""
        return bool(self.cpus) and not self.open

    def resized(self, cpus: CpuSet) -> Allocation:
        """With these CPUs instead; they are its own where those before were."""
        return replace(self, cpus=cpus, exclusive=cpus if self.exclusive else CpuSet())

    def sharing(self) -> Allocation:
        """Without CPUs for itself; its cpuset is still to be set anew."""
        return replace(self, exclusive=CpuSet(), rounded_up=0)


def as_one(reservations: Sequence[Reservation]) -> Reservation:
    """A pod's reservations, at least one, as what they are together: by the pod's uid where they are several. Their
    order makes no difference.
    """
    if len(reservations) == 1:
        return reservations[0]
    first, *others = sorted(reservations, key=attrgetter("key"))
    mask = reduce(or_, (reservation.numa_nodes.mask for reservation in reservations))
    return replace(
        first,
        key=first.pod,
        group=max(reservation.group for reservation in reservations),
        workload=max(reservation.workload for reservation in reservations),
        numa_nodes=NumaSet(mask),
        demand=sum((reservation.demand for reservation in others), first.demand),
        parts=(),
        cache_domain=CpuSet(),
        let_out=NumaSet(reduce(or_, (reservation.let_out.mask for reservation in reservations))),
    )


def namespace_of(workload: str, group: str) -> str:
    """Of NAMESPACE/KIND/NAME, else of NAMESPACE/name."""
    return (workload or group).partition("/")[0]
