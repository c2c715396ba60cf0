"""What becomes of members when CPUs or memory of the node go or come."""

from __future__ import annotations

from dataclasses import replace

from enforcer.hook.decision_records import as_told
from enforcer.hook.facts import pods
from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.ledger import Ledger
from enforcer.hook.ownership.checkpoint import Grant
from enforcer.hook.unbinding import unbound
from numakin.placement.decide import memory
from numakin.placement.decide.decide import Reason, Request
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import shares_of
from numakin.placement.model.live_usage import Live, devices_near
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Cpus
from numakin.placement.state import pools
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation
from numakin.process.log import Log
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri

log = Log("hook.hardware")


class Rehoming:
    """Works on the agent's ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._opened: set[str] = set()

    def onto(self, node: NodeFacts) -> list[nri.ContainerUpdate]:
        """Takes the node as it is now: members whose place is gone, or that had none, are decided anew, all others keep
        theirs, and every shared pool is what it comes to. Returns updates for the runtime.
        """
        ledger, before, was = self._ledger, self._ledger.occupancy, self._ledger.machine
        ledger.node, ledger.machine = node, node.machine
        ledger.learned.planned(local.Plan(generation=before.generation))
        lost = (*stranded(node.machine, replace(before, reserved=node.reserved)), *self._on_parts_of_cores())
        lost = tuple(dict.fromkeys(lost))
        ledger.occupancy = carried_over(node.machine, node.reserved, before, lost)
        ledger.refresh_memory()
        yielded = list[nri.ContainerUpdate]()
        for key in lost:
            numa_nodes = before.reservations[key].numa_nodes
            why = Reason("machine", f"NUMA node {numa_nodes}", "has other CPUs or memory than before")
            yielded += self._decide_anew(key, before, why)
        self._open_where_too_little()
        ledger.settle()
        updates = pods.merged([*self._named_in_full(was), *self._still_open(), *ledger.updates_since(before), *yielded])
        self._opened = {update.container_id for update in updates if not self._pinned(update.container_id)}
        log.warning(
            "the machine has changed",
            cpus=node.machine.cpus, mems=node.machine.mems, decided_anew=len(lost), updates=len(updates),
        )  # fmt: skip
        return updates

    def _open_where_too_little(self) -> None:
        """The memory of those who are bound to less by now than they may use: a part of it has gone."""
        ledger = self._ledger
        machine, held = ledger.machine, ledger.occupancy.allocations
        bound = [it for it in (*ledger.requests.values(), *ledger.narrowed.values()) if it.container in held]
        short = [it for it in bound if not memory.holds(machine, it, held[it.container].mems)]
        ledger.occupancy, opened = unbound(machine, ledger.occupancy, short)
        ledger.records.counts["memory opened"] += len(opened)

    def off_reserved(self) -> list[nri.ContainerUpdate]:
        """For members that were taken over on CPUs which are reserved by now: `--reserved-cpus` was another before. And
        for those who have all that are left for themselves, as others went offline meanwhile, or parts of cores alone,
        as SMT was switched on, or are bound to memory that has gone.
        """
        ledger, before = self._ledger, self._ledger.occupancy
        reserved, machine = before.reserved, ledger.machine
        lost = [key for key, reservation in before.reservations.items() if _can_not_stay(machine, before, reservation)]
        none_left, parts = machine.cpus <= before.exclusive, self._on_parts_of_cores()
        bare = [held.reservation for held in before.allocations.values() if not held.mems <= machine.all_mems]
        lost = [*dict.fromkeys([*(lost if reserved or none_left else ()), *parts, *bare])]
        if ledger.released or not lost:
            return []
        ledger.occupancy = carried_over(machine, reserved, before, tuple(lost)).with_live(before.live)
        why = Reason("reserved", f"CPUs {reserved}", "it had of them before")
        if none_left:
            why = Reason("machine", f"{len(machine.cpus)} CPUs", "are left, and none to others")
        elif parts:
            why = Reason("machine", f"{len(machine.cpus)} CPUs", "are there: its cores have more of them than before")
        bereft = Reason("machine", f"NUMA node {machine.all_mems}", "has memory, and none where its own was")
        yielded = list[nri.ContainerUpdate]()
        for key in lost:
            yielded += self._decide_anew(key, before, bereft if key in bare else why)
        ledger.settle()
        log.warning("members had CPUs or memory that can't be theirs now", reserved=reserved, decided_anew=len(lost))
        return [*ledger.updates_since(before), *yielded]

    def _on_parts_of_cores(self) -> list[str]:
        """The reservations of containers that are to have whole cores, and have some of whose CPUs others run on."""
        ledger = self._ledger
        machine, allocations = ledger.machine, ledger.occupancy.allocations
        return [
            request.reservation_key
            for container, request in ledger.requests.items()
            if request.opt_in.cpus is Cpus.EXCLUSIVE_CORES
            and (held := allocations.get(container)) is not None
            and any(not machine.core_of(cpu) <= held.exclusive for cpu in held.exclusive & machine.cpus)
        ]

    def _named_in_full(self, was: Machine) -> list[nri.ContainerUpdate]:
        """For those whose cgroup names all CPUs or all memory of the machine as it was: maybe of an earlier process. A
        member of a released node is there as one that has not opted in, and nothing of it is ours but what was given.
        """
        ledger, updates, residents = self._ledger, list[nri.ContainerUpdate](), self._ledger.residents.now()
        everyone, released = ledger.occupancy.rules.everyone, {*ledger.residents.members} if ledger.released else set()
        for key, allocation in ledger.occupancy.allocations.items():
            not_ours = allocation.reservation == key and (not everyone or key in released)
            if (allocation.cpus and allocation.mems) or allocation.externally_managed or not_ours:
                continue
            path = residents[key].cgroups_path if key in residents else ""
            now, widest = ledger.node.cpuset_now(path) if path else None, ledger.widest(key)
            if now is None:
                continue
            all_before = bool(now[0]) and was.cpus <= now[0] and not allocation.cpus
            cpus = widest if all_before and not widest <= now[0] else CpuSet()
            mems = ledger.mems_due(key, path, now[1]) if not allocation.mems else NumaSet()
            if cpus or mems:
                updates.append(pods.update(key, cpus, mems))
        return updates

    def _still_open(self) -> list[nri.ContainerUpdate]:
        """Those that lost their place before, or were released, were given all CPUs and memory of that time by name."""
        ledger = self._ledger
        opened = {key for key in self._opened if not self._pinned(key)}
        if ledger.released:
            residents = ledger.residents.now()
            opened |= {
                key for key, grant in ledger.past.grants.items() if key in residents and not grant.externally_managed
            }
        allocations = ledger.occupancy.allocations
        return [self._in_full(key, allocations.get(key)) for key in sorted(opened)]

    def _in_full(self, key: str, held: Allocation | None) -> nri.ContainerUpdate:
        """Its memory is named only where we may have done so before."""
        ledger = self._ledger
        cpus, mems = (held.cpus, held.mems) if held is not None else (CpuSet(), NumaSet())
        ours = held is None or held.reservation != key or key in ledger.past.grants
        return pods.update(key, cpus or ledger.widest(key), mems or (ledger.machine.all_mems if ours else NumaSet()))

    def _pinned(self, container: str) -> bool:
        allocation = self._ledger.occupancy.allocations.get(container)
        return allocation is None or allocation.placed

    def _decide_anew(self, key: str, before: Occupancy, why: Reason) -> list[nri.ContainerUpdate]:
        """Updates for those that are left to the other owner by now within whose CPUs they were."""
        ledger, residents, yielded = self._ledger, self._ledger.residents.now(), list[nri.ContainerUpdate]()
        for container in sorted(before.directory.by_reservation.get(key, ())):
            request = ledger.requests.get(container) or ledger.narrowed.get(container)
            if request is None or container not in residents or ledger.released:
                continue
            limit = ledger.within.get(container)
            if limit is not None and not ledger.has_room_within(request, limit):
                yielded += self._left(request, residents[container], limit, before.allocations[container])
                continue
            _, decision = ledger.place(request)
            at = ledger.occupancy.generation
            ledger.records.again(residents[container], decision, why, event="machine", at=at)
        return yielded

    def _left(
        self, request: Request, member: local.LocalContainer, limit: CpuSet, held: Allocation
    ) -> list[nri.ContainerUpdate]:
        """It runs within all that is left of the other owner's CPUs, and has its memory back. held: what it had."""
        ledger, (pod, container) = self._ledger, as_told(member)
        container.linux.resources.cpu.shares.value = shares_of(request.demand.cpu_milli)
        left, mems = limit & ledger.machine.all_cpus, ledger.machine.all_mems if held.mems else NumaSet()
        ledger.left[container.id] = Grant(held.pod, cpus=held.cpus, mems=held.mems, within=limit)
        ledger.yield_to(pod, container, pods.Claim(str(left), ""))
        return [pods.update(container.id, left, mems)] if left or mems else []


def stranded(machine: Machine, occupancy: Occupancy) -> tuple[str, ...]:
    """The members' reservations that this machine can't hold as they are: on a NUMA node that has gone or has no CPU
    for them any more, or with exclusive or stable CPUs or bound memory of which some has gone, or is reserved. And
    those that have no home, since there may be one now, unless one of the pod's cpusets is to stay.
    """
    return tuple(key for key, reservation in occupancy.reservations.items() if _lost(machine, occupancy, reservation))


def _lost(machine: Machine, occupancy: Occupancy, reservation: Reservation) -> bool:
    if not reservation.opted_in:
        return False
    held = [occupancy.allocations[key] for key in occupancy.directory.by_reservation.get(reservation.key, ())]
    homeless = any(not (allocation.placed or allocation.externally_managed) for allocation in held)
    stays = any(allocation.stable for allocation in held)
    return (homeless and not stays) or _can_not_stay(machine, occupancy, reservation)


def _can_not_stay(machine: Machine, occupancy: Occupancy, reservation: Reservation) -> bool:
    """Whether a member's home is not there any more, or a container of it has there what it may not have: exclusive
    CPUs, where those that are left would be some container's alone, one and all.
    """
    if not reservation.opted_in:
        return False
    known = machine.cpu_nodes | machine.all_mems
    if not reservation.numa_nodes <= known or reservation.numa_nodes.isdisjoint(machine.cpu_nodes):
        return True
    held = [
        occupancy.allocations[container] for container in occupancy.directory.by_reservation.get(reservation.key, ())
    ]
    kept = machine.cpus - occupancy.reserved
    if machine.cpus <= occupancy.exclusive and any(allocation.exclusive for allocation in held):
        return True
    if any(not allocation.exclusive <= kept or not allocation.mems <= machine.all_mems for allocation in held):
        return True
    if any(allocation.stable and not allocation.cpus <= kept for allocation in held):
        return True
    shares = any(allocation.placed and not allocation.exclusive for allocation in held)
    return shares and not pools.pool_of(machine, occupancy, reservation.pool, reservation.numa_nodes)


def carried_over(machine: Machine, reserved: CpuSet, before: Occupancy, lost: tuple[str, ...]) -> Occupancy:
    """Everything on this machine, but for the lost reservations and what their containers were given by us."""
    reservations = {
        key: _within_caches(machine, reservation) if reservation.opted_in else _elsewhere(machine, reservation)
        for key, reservation in before.reservations.items()
        if key not in lost
    }
    allocations = {key: allocation for key, allocation in before.allocations.items() if not _of(allocation, lost)}
    after = replace(
        before,
        reservations=reservations,
        allocations=allocations,
        reserved=reserved,
        live=Live(devices=devices_near(before.live.devices, (machine.cpu_nodes | machine.all_mems).mask)),
        generation=before.generation + 1,
    )
    return after.on(machine)


def _of(allocation: Allocation, lost: tuple[str, ...]) -> bool:
    return allocation.reservation in lost and not allocation.externally_managed


def _within_caches(machine: Machine, reservation: Reservation) -> Reservation:
    """Kept within no cache domain that is another now: `CacheDomains` finds one anew. And let out no more: where it is
    hot is to be seen again.
    """
    reservation = replace(reservation, let_out=NumaSet()) if reservation.let_out else reservation
    domain = reservation.cache_domain
    if not domain or domain.mask in machine.cache_domains[reservation.numa_nodes.lowest]:
        return reservation
    return replace(reservation, cache_domain=CpuSet())


def _elsewhere(machine: Machine, reservation: Reservation) -> Reservation:
    """What has not opted in counts where its NUMA nodes are left, else everywhere."""
    left = reservation.numa_nodes & (machine.cpu_nodes | machine.all_mems)
    return reservation if left == reservation.numa_nodes else replace(reservation, numa_nodes=left or machine.cpu_nodes)
