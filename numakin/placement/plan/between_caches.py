"""Which members that are kept within a cache domain to move to another one of their NUMA node, within a budget.

No memory gets nearer or farther by it: what a step gains is traffic that comes into one cache. The best step at a
time, as between NUMA nodes (`numakin.placement.plan.rebalance`): into free room, or two members that change places; or
a chain.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass

from numakin.placement.decide.cpus.cache_domain import kin_mask
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.chains import Chain, ChainMove, Ways, better, chains, differences, first_that_holds
from numakin.placement.plan.partition import PartitionProblem, PartitionState
from numakin.placement.plan.problem import Weights, pulls_of
from numakin.placement.plan.rebalance import Relocation, best
from numakin.placement.state.occupancy import Occupancy
from numakin.placement.state.pools import is_hot, shared

NO_ROOM = -(1 << 40)
"""Millicores that are free in a domain where no member is to go."""


def between_caches(
    machine: Machine,
    occupancy: Occupancy,
    weights: Weights,
    *,
    movable: Collection[str],
    budget: int,
    pays: float,
    declined: Container[Ways] = (),
    search: int = 0,
    chain_budget: int = 0,
) -> tuple[tuple[Relocation, ...], ...]:
    """Steps in the order in which to make them, with at most `budget` members in all; where none gains, a chain of at
    most `chain_budget` members, for which so many steps are searched.

    weights: what pairs of reservations exchange. movable: keys of the reservations that may be moved. pays: share of
    all traffic that a step must gain for each member that it moves. declined: steps that are not to be taken.
    """
    traffic = sum(weight for pair, weight in weights.items() if occupancy.reservations.keys() >= {*pair})
    least = pays * traffic
    between = {(first, other): weight for (first, other), weight in weights.items() if first != other}
    nodes = {
        numa_node: _CachesOfNode(machine, occupancy, numa_node, members, between)
        for numa_node, members in _members(machine, occupancy, weights, movable).items()
        if any(member.movable for member in members)
    }
    steps: list[tuple[Relocation, ...]] = []
    found: dict[int, Chain | None] = {}
    changed = set(nodes)
    while budget > 0:
        found |= {numa_node: nodes[numa_node].best(budget, declined, least) for numa_node in changed}
        gains = {at: step.gain / len(step.moves) for at, step in found.items() if step is not None}
        at = max(gains, key=lambda numa_node: (gains[numa_node], -numa_node), default=None)
        if at is None or gains[at] < least:
            break
        step = found[at]
        assert step is not None
        steps.append(nodes[at].made(step, traffic))
        budget -= len(step.moves)
        # With one member left two may no longer change places; else only that NUMA node has another best step.
        changed = set(nodes) if budget == 1 else {at}
    if search and chain_budget > 2 and not steps:
        for node in nodes.values():
            chain = node.chain(chain_budget, search // len(nodes), declined, least)
            if chain is not None:
                return (node.made(chain, traffic),)
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class _DomainMember:
    """One that is within a single domain. domain: its place among the NUMA node's. milli: CPU that it takes from the
    shared pool.
    """

    key: str
    domain: int
    milli: int
    movable: bool


def _members(
    machine: Machine, occupancy: Occupancy, weights: Weights, movable: Collection[str]
) -> dict[int, list[_DomainMember]]:
    """By NUMA node, those that talk: kept within a domain, or on exclusive CPUs in one, which stay there."""
    members: dict[int, list[_DomainMember]] = {}
    talking = {key for pair, weight in weights.items() if weight > 0 for key in pair}
    for key in sorted(talking & occupancy.reservations.keys()):
        reservation = occupancy.reservations[key]
        mask = kin_mask(occupancy, reservation)
        if len(reservation.numa_nodes) != 1 or not mask:
            continue
        numa_node = reservation.numa_nodes.lowest
        for at, domain in enumerate(machine.cache_domains[numa_node]):
            if not mask & ~domain:
                own = bool(occupancy.own_of(key))
                member = _DomainMember(key, at, 0 if own else reservation.demand.cpu_milli, key in movable and not own)
                members.setdefault(numa_node, []).append(member)
    return members


class _CachesOfNode:
    """The members of one NUMA node over its cache domains, to be changed step by step."""

    def __init__(
        self, machine: Machine, occupancy: Occupancy, numa_node: int, members: Sequence[_DomainMember], weights: Weights
    ) -> None:
        self._numa_node = NumaSet(1 << numa_node)
        self._domains = [CpuSet(mask) for mask in machine.cache_domains[numa_node]]
        self._keys = [member.key for member in members]
        bins = range(len(self._domains))
        counts = [[int(member.domain == at) for at in bins] for member in members]
        pool = shared(machine, occupancy, self._numa_node)
        taken = [sum(member.milli for member in members if member.domain == at) for at in bins]
        free = [_free(occupancy, pool, domain) for domain in self._domains]
        problem = PartitionProblem(
            sizes=[(member.milli, 0) for member in members],
            counts=[1] * len(members),
            pulls=pulls_of(dict.fromkeys(self._keys, 1), weights),
            capacity=[(free[at] + taken[at], 0) for at in bins],
            nearness=[[float(at == other) for other in bins] for at in bins],
            pinned=[
                [0 if member.movable else count for count in row] for member, row in zip(members, counts, strict=True)
            ],
        )
        self._state = PartitionState.as_is(problem, counts)

    def best(self, budget: int, declined: Container[Ways], least: float) -> Chain | None:
        """least: what the second of two that change places brings."""
        return best(self._state, budget, self._ways, declined, least)

    def chain(self, budget: int, search: int, declined: Container[Ways], least: float) -> Chain | None:
        """The best of several members that gain together what none gains alone. least: for each of them."""
        moves = differences(self._state, better(self._state, search))
        return first_that_holds(chains(self._state, moves, budget), self._ways, declined, least)

    def made(self, step: Chain, traffic: float) -> tuple[Relocation, ...]:
        """Takes it. traffic: all that is exchanged."""
        for move in step.moves:
            self._state.move(*move)
        return tuple(
            Relocation(
                self._keys[kind], self._numa_node, self._numa_node, step.gain / traffic,
                self._domains[source], self._domains[target],
            )
            for kind, source, target in step.moves
        )  # fmt: skip

    def _ways(self, moves: Sequence[ChainMove]) -> Ways:
        return frozenset((self._keys[kind], self._numa_node, self._domains[target]) for kind, _, target in moves)


def _free(occupancy: Occupancy, pool: CpuSet, domain: CpuSet) -> int:
    """Millicores that no member that is kept within the domain has asked for."""
    if is_hot(occupancy, domain.mask):
        return NO_ROOM
    return 1000 * len(pool & domain) - occupancy.directory.within.get(domain.mask, 0)
