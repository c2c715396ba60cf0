"""What one request finds on a machine, by NUMA node, and what a set of NUMA nodes would be worth to it.

What is promised has to fit, what is expected weighs: workloads that use more than they ask for count as that much in
room and emptiness, and where more would be used than there is comes after where it would not.

A demand fits on a set when all CPU requests there stay within its CPUs, the memory requests within its
memory and its hugepages likewise (by account, and by what is really free), and, for exclusive CPUs, when the shared
pool can spare them. A memory-only NUMA node lends its memory to the nearest one with CPUs, at the price of rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from numakin.placement.decide.candidates import narrowest
from numakin.placement.decide.headroom import GroupOutlook, Headroom, StillNeeded
from numakin.placement.decide.hints import Need, Provider
from numakin.placement.decide.memory import STALLED, capacity, tiers
from numakin.placement.decide.request import Request
from numakin.placement.decide.scoring import empty_share, room_share, score
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.state.load_index import EMPTY, Load, shared_out
from numakin.placement.state.occupancy import Occupancy, Part

CPU, OWN, MEMORY, HUGEPAGES = "CPU", "exclusive CPUs", "memory", "hugepages"
"""What a set can be short of."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A set of NUMA nodes, weighed. short: what it lacks, empty when the demand fits.

    pressed: one of them is under memory pressure. hot: they, or one of them, are. misses: devices that are near none of
    them. spills: memory would come from a lower tier. kin, room, empty, span: the terms of `scoring`. sockets: how many
    it spans, as far as known. left: millicores that stay unrequested. unused: those that no container requests or is
    expected to use; negative where more will be used than there is.
    """

    numa_nodes: NumaSet
    short: str
    pressed: bool
    hot: bool
    misses: int
    spills: bool
    kin: float
    room: float
    empty: float
    span: float
    sockets: int
    left: int
    unused: int
    reservations: int

    @property
    def fits(self) -> bool:
        return not self.short

    @property
    def crowded(self) -> bool:
        """Whether more CPU will be used there than there is, though the requests would fit."""
        return self.unused < min(0, self.left)

    @property
    def flawless(self) -> bool:
        """Whether nothing that comes before kin speaks against it."""
        return not (self.pressed or self.hot or self.misses or self.spills or self.crowded)

    @property
    def score(self) -> float:
        """Kin count for nothing where no other is to go, or more will be used than there is."""
        kin = 0.0 if self.hot or self.crowded else self.kin
        return score(kin, self.room, self.empty, self.span) if self.fits else 0.0

    def rank(self, *, closest: bool) -> tuple[float, ...]:
        """Smaller is better. closest: a shorter average distance goes before emptiness, as the kubelet's option has
        it.
        """
        return (
            bool(self.short),
            len(self.numa_nodes),
            self.pressed,
            self.hot,
            self.misses,
            self.spills,
            self.crowded,
            -round(self.kin, 9),
            -round(self.room, 9),
            -round(self.span, 9) if closest else 0,
            self.sockets if closest else 0,
            -round(self.empty, 9),
            self.reservations,
            self.numa_nodes.mask,
        )


@dataclass(frozen=True, slots=True)
class Room:
    """What there is for one request. usable: the NUMA nodes where it may go. load: what all other reservations put on
    the machine.
    """

    machine: Machine
    occupancy: Occupancy
    request: Request
    load: Load
    usable: tuple[int, ...]
    headroom: Headroom
    needed: StillNeeded
    group: GroupOutlook

    def weigh(self, mask: int) -> Candidate:
        """What the set of NUMA nodes with this mask, usable ones, is worth."""
        numa_nodes = NumaSet(mask)
        nodes = [numa_node for numa_node in self.usable if mask >> numa_node & 1]
        counts = self.machine.cpu_counts
        size = sum(counts[node] for node in nodes)
        left, unused = self.left(nodes), self.unused(nodes)
        spare = min(left, unused)
        home = self.machine.nearest_mems(numa_nodes)
        enough = self._has_memory(home)
        spills = not enough and self._has_memory(home | tiers(self.machine, numa_nodes))
        used = sum(self.occupancy.live.used_cpu.get(node, 0) for node in nodes)
        return Candidate(
            numa_nodes=numa_nodes,
            short=self._short(nodes, left, enough_memory=enough or spills),
            pressed=any(self.occupancy.live.stalled.get(node, 0.0) >= STALLED for node in nodes),
            hot=self.is_hot(nodes),
            misses=sum(1 for near in self.request.devices if near and not near.mask & mask),
            spills=spills,
            kin=sum(self.group.kin[node] * counts[node] for node in nodes) / size,
            room=room_share(spare, self.group.rest + sum(self.group.reserved.get(node, 0) for node in nodes)),
            empty=empty_share(spare, used, 1000 * size),
            span=span(self.machine, nodes),
            sockets=sockets(self.machine, nodes),
            left=left,
            unused=unused,
            reservations=sum(self.load.rows.get(node, EMPTY).reservations for node in nodes),
        )

    def is_hot(self, nodes: Sequence[int]) -> bool:
        """Whether the CPUs of one of these NUMA nodes, or all of theirs, are nearly all in use while others idle."""
        hot = self.occupancy.live.hot
        if not hot:
            return False
        masks = [self.machine.node(node).cpus.mask for node in nodes]
        return any(hot.get(mask, False) for mask in (*masks, sum(masks)))

    def has_cpu(self, mask: int) -> bool:
        """Whether the CPU requests would fit: the quick doubt that spares weighing."""
        return self.needed.cpu <= 0 or self.left([numa_node for numa_node in self.usable if mask >> numa_node & 1]) >= 0

    def fits_at_all(self) -> bool:
        """Whether all usable NUMA nodes together hold the request: what does not fit there fits on no part of them."""
        return bool(self.usable) and self.weigh(sum(1 << node for node in self.usable)).fits

    def least_width(self) -> int:
        """The fewest NUMA nodes that any one resource by itself needs."""
        own = () if self.headroom.own is None else [self.headroom.own[node] for node in self.usable]
        wanted = self.needed.own
        memory = self.request.reservation_demand.memory if self.headroom.memory else 0
        return max(
            narrowest([self.headroom.cpu[node] for node in self.usable], self.needed.cpu),
            narrowest(own, wanted),
            narrowest([self._reachable(node) for node in self.usable], memory) if memory else 1,
        )

    def _reachable(self, numa_node: int) -> int:
        """Bytes that a home there has at the most, on the lower tier too."""
        return sum(max(0, self.headroom.memory[mem]) for mem in self.machine.reach[numa_node])

    def shares(self) -> dict[int, float]:
        """How much of the demand each usable NUMA node holds, by the resource that it holds least of."""
        memory = self.request.reservation_demand.memory if self.headroom.memory else 0
        shares = {}
        for numa_node in self.usable:
            share = max(0, self.headroom.cpu[numa_node]) / self.needed.cpu if self.needed.cpu > 0 else 1.0
            if memory:
                near = self.machine.nearest_mems(NumaSet(1 << numa_node))
                share = min(share, max(0, sum(self.headroom.memory[mem] for mem in near)) / memory)
            shares[numa_node] = share
        return shares

    def left(self, nodes: Sequence[int]) -> int:
        """Millicores that stay unrequested; an overcommitted NUMA node gives nothing to a wide set, and takes
        nothing.
        """
        if len(nodes) == 1:
            return self.headroom.cpu[nodes[0]] - self.needed.cpu
        return sum(max(0, self.headroom.cpu[node]) for node in nodes) - self.needed.cpu

    def unused(self, nodes: Sequence[int]) -> int:
        """Millicores that stay free of what all there are expected to use; the sum as in `left`."""
        if len(nodes) == 1:
            return self.headroom.unused[nodes[0]] - self.needed.expected
        return sum(max(0, self.headroom.unused[node]) for node in nodes) - self.needed.expected

    def _short(self, nodes: Sequence[int], left: int, *, enough_memory: bool) -> str:
        if left < 0 < self.needed.cpu:
            return CPU
        if self.headroom.own is not None and sum(self.headroom.own[node] for node in nodes) < self.needed.own:
            return OWN
        return "" if enough_memory else MEMORY

    def _has_memory(self, mems: NumaSet) -> bool:
        demand = self.request.reservation_demand
        if (
            demand.memory
            and self.headroom.memory
            and sum(max(0, self.headroom.memory[numa_node]) for numa_node in mems) < demand.memory
        ):
            return False
        if (
            self.needed.memory
            and self.headroom.memory
            and sum(max(0, self.headroom.real[numa_node]) for numa_node in mems) < self.needed.memory
        ):
            return False
        return all(self._has_pages(mems, size, amount) for size, amount in demand.hugepages.items() if amount)

    def _has_pages(self, mems: NumaSet, size: int, amount: int) -> bool:
        if sum(max(0, self.pages(mem, size)) for mem in mems) < amount:
            return False
        yet_to_take = self.needed.hugepages.get(size, 0)
        return not yet_to_take or sum(self.free_pages(numa_node, size) for numa_node in mems) >= yet_to_take

    def pages(self, numa_node: int, size: int) -> int:
        """Bytes in hugepages of one size that are not requested."""
        return self.machine.node(numa_node).hugepages.get(size, 0) - self.load.hugepages.get((numa_node, size), 0)

    def free_pages(self, numa_node: int, size: int) -> int:
        """Bytes in hugepages of one size that are not in use now; all of them where that is not known."""
        aside = self.machine.node(numa_node).hugepages.get(size, 0)
        return self.occupancy.live.free_hugepages.get((numa_node, size), aside)

    def parts(self, candidate: Candidate) -> tuple[Part, ...]:
        """How the demand would lie there; empty when all of it is on one NUMA node."""
        nodes = [*candidate.numa_nodes]
        mems = self.machine.nearest_mems(candidate.numa_nodes)
        if len(nodes) == 1 and not candidate.spills and mems <= candidate.numa_nodes:
            return ()
        demand = self.request.reservation_demand
        milli = dict(zip(nodes, shared_out(demand.cpu_milli, [self.headroom.cpu[node] for node in nodes]), strict=True))
        home = [*mems]
        here = (
            min(demand.memory, sum(max(0, self.headroom.memory[numa_node]) for numa_node in home))
            if candidate.spills
            else demand.memory
        )
        held = dict(zip(home, shared_out(here, [self.headroom.memory[numa_node] for numa_node in home]), strict=True))
        lower = [*tiers(self.machine, candidate.numa_nodes)] if candidate.spills else []
        rest = shared_out(demand.memory - here, [self.headroom.memory[numa_node] for numa_node in lower])
        held.update(zip(lower, rest, strict=True))
        pages = {
            size: dict(zip(held, shared_out(amount, [self._left_aside(size, mem) for mem in held]), strict=True))
            for size, amount in demand.hugepages.items()
        }
        return tuple(
            Part(
                numa_node,
                milli.get(numa_node, 0),
                held.get(numa_node, 0),
                tuple((size, there) for size in sorted(pages) if (there := pages[size].get(numa_node, 0))),
            )
            for numa_node in sorted({*milli, *held})
        )

    def providers(self) -> tuple[Provider, ...]:
        """The request as the topology manager's hint providers have it: one of CPU, memory and hugepages, since memory
        is bound to wherever the CPUs are, and one of each device.

        Unlike the kubelet's, a NUMA node without memory counts that of the nearest one as its own, and one without a
        usable CPU has no memory to give either.
        """
        machine, demand = self.machine, self.request.reservation_demand
        near = {cpu_node: machine.nearest_mems(NumaSet.of((cpu_node,))) for cpu_node in machine.cpu_nodes}

        def there(amount: Callable[[int], int], nodes: Iterable[int] = near) -> dict[int, int]:
            return {numa_node: sum(max(0, amount(mem)) for mem in near[numa_node]) for numa_node in nodes}

        millicores = {numa_node: 1000 * machine.cpu_counts[numa_node] for numa_node in near}
        home = [
            Need(
                CPU,
                self.needed.cpu,
                millicores,
                {numa_node: max(0, self.headroom.cpu[numa_node]) for numa_node in self.usable},
            )
        ]
        if self.headroom.own is not None:
            home.append(Need(OWN, self.needed.own, machine.cpu_counts, self.headroom.own))
        whole, free = (
            there(partial(capacity, machine)),
            there(lambda mem: min(self.headroom.memory[mem], self.headroom.real[mem]), self.usable),
        )
        home.append(Need(MEMORY, demand.memory if machine.mems else 0, whole, free))
        for size, amount in demand.hugepages.items():
            aside, left = there(partial(self._aside, size)), there(partial(self._left_aside, size), self.usable)
            home.append(Need(HUGEPAGES, amount, aside, left))
        devices = (dict.fromkeys(device, 1) for device in self.request.devices if device)
        return tuple(home), *((Need("device", 1, device, device),) for device in devices)

    def _aside(self, size: int, numa_node: int) -> int:
        return self.machine.node(numa_node).hugepages.get(size, 0)

    def _left_aside(self, size: int, numa_node: int) -> int:
        """Bytes in hugepages that are neither requested nor in use."""
        return min(self.pages(numa_node, size), self.free_pages(numa_node, size))


def span(machine: Machine, nodes: Sequence[int]) -> float:
    """The mean closeness among NUMA nodes, each to itself included."""
    if len(nodes) == 1:
        return 1.0
    near = machine.closenesses
    return sum(near[a][b] for a in nodes for b in nodes) / len(nodes) ** 2


def sockets(machine: Machine, nodes: Sequence[int]) -> int:
    """How many sockets these NUMA nodes have CPUs on, as far as that is known; at least 1."""
    if len(nodes) == 1:
        return 1
    return len(frozenset[int]().union(*(machine.sockets_of[node] for node in nodes))) or 1
