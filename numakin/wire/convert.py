"""Between placement's values and the report stream's messages: the one place that knows both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from numakin.placement.decide.decide import Kin, Reason
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.live_usage import Live
from numakin.placement.model.rules import Rules
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.namespaces import Namespaces, NamespaceTerms
from numakin.placement.optin.options import OptIn, Policy, Pool
from numakin.placement.optin.quotas import Quota
from numakin.placement.state.occupancy import Allocation, Occupancy, Part, Reservation
from numakin.placement.state.yielded import Yielded
from numakin.wire import report_pb2 as pb

DEFAULT_RULES = Rules()

DEMANDS = 1_024
"""Different demands that are kept beyond what has them, for equal ones to come."""

ID_LISTS = 256
"""Of CPUs, and of NUMA nodes, likewise; each has at most `bounds.ID_LIST_LENGTH` characters."""

_cpus, _numa_nodes = lru_cache(maxsize=ID_LISTS)(CpuSet.parse), lru_cache(maxsize=ID_LISTS)(NumaSet.parse)

_RULES = {field.name: field.has_presence for field in pb.Rules.DESCRIPTOR.fields}
"""Whether one that is not set has a default of its own."""

_POOLS = {str(pool): pool for pool in Pool}
_POLICIES = {str(policy): policy for policy in Policy}


def machine_to(machine: Machine, reserved: CpuSet = CpuSet(), rules: Rules = DEFAULT_RULES) -> pb.Machine:
    return pb.Machine(
        name=machine.name,
        numa_nodes=[
            pb.NumaNode(
                id=node.id,
                cpus=str(node.all_cpus),
                memory=node.memory,
                distances=[node.distances[other.id] for other in machine.numa_nodes],
                hugepages=dict(node.hugepages),
                isolated_cpus=str(node.isolated),
                withheld=node.withheld,
            )
            for node in machine.numa_nodes
        ],
        cores=[str(core) for core in machine.cores],
        caches=[str(cache) for cache in machine.caches],
        sockets=[str(socket) for socket in machine.sockets],
        clusters=[str(cluster) for cluster in machine.clusters],
        reserved_cpus=str(reserved),
        rules=pb.Rules(**{name: getattr(rules, name) for name in _RULES}),
    )


def _numa_node(message: pb.NumaNode, ids: list[int]) -> NumaNode:
    cpus, isolated = CpuSet.parse(message.cpus), CpuSet.parse(message.isolated_cpus)
    return NumaNode(
        id=message.id,
        cpus=cpus - isolated,
        memory=message.memory,
        distances=dict(zip(ids, message.distances, strict=False)),
        hugepages=dict(message.hugepages),
        isolated=cpus & isolated,
        withheld=message.withheld,
    )


def rules_from(message: pb.Machine) -> Rules:
    """The operator's settings that came with a machine; the defaults for what was not set."""
    rules = message.rules
    return Rules(
        **{name: getattr(rules, name) for name, presence in _RULES.items() if not presence or rules.HasField(name)}
    )


def machine_from(message: pb.Machine) -> Machine:
    """PlacementError when the message is not a machine."""
    ids = [node.id for node in message.numa_nodes]
    return Machine(
        numa_nodes=tuple(_numa_node(node, ids) for node in message.numa_nodes),
        cores=tuple(CpuSet.parse(core) for core in message.cores),
        caches=tuple(CpuSet.parse(cache) for cache in message.caches),
        sockets=tuple(CpuSet.parse(socket) for socket in message.sockets),
        name=message.name,
        clusters=tuple(CpuSet.parse(cluster) for cluster in message.clusters),
    )


def empty_from(message: pb.Machine) -> Occupancy:
    """The occupancy of a machine without containers: all of it that reports do not bring. PlacementError when its
    reserved CPUs are not a list.
    """
    return Occupancy(reserved=CpuSet.parse(message.reserved_cpus), rules=rules_from(message))


def demand_to(demand: Demand) -> pb.Demand:
    return pb.Demand(
        cpu_milli=demand.cpu_milli,
        memory=demand.memory,
        memory_limit=demand.memory_limit,
        hugepages=dict(demand.hugepages),
        estimated=sorted(demand.estimated),
        used_milli=demand.used_milli,
    )


def demand_from(message: pb.Demand) -> Demand:
    """Equal messages give the same value: most pods are replicas of others. What this version does not know is taken
    out of the message.
    """
    message.DiscardUnknownFields()
    return _demand(message.SerializeToString(deterministic=True))


@lru_cache(maxsize=DEMANDS)
def _demand(body: bytes) -> Demand:
    message = pb.Demand.FromString(body)
    return Demand(
        cpu_milli=message.cpu_milli,
        memory=message.memory,
        memory_limit=message.memory_limit if message.HasField("memory_limit") else None,
        hugepages=dict(message.hugepages),
        estimated=frozenset(message.estimated),
        used_milli=message.used_milli,
    )


def opt_in_from(message: pb.ContainerDemand, own: OptIn) -> OptIn:
    """own: what the container's annotations say, which applies to what was not set, or is not known here."""
    return replace(own, policy=_POLICIES.get(message.policy, own.policy), size=message.size or own.size)


def reservation_to(reservation: Reservation) -> pb.Reservation:
    return pb.Reservation(
        key=reservation.key,
        pod=reservation.pod,
        group=reservation.group,
        numa_nodes=str(reservation.numa_nodes),
        demand=demand_to(reservation.demand),
        parts=[
            pb.Part(numa_node=numa_node, cpu_milli=milli, memory=memory, hugepages=dict(pages))
            for numa_node, milli, memory, pages in reservation.parts
        ],
        pool="" if reservation.pool is Pool.SHARED else reservation.pool,
        alone=reservation.alone,
        size=reservation.size,
        workload=reservation.workload,
        cache_domain=str(reservation.cache_domain),
        let_out=str(reservation.let_out),
    )


def reservation_from(message: pb.Reservation) -> Reservation:
    """PlacementError when the message is not a reservation; a pool that is not known here is the shared one."""
    return Reservation(
        key=message.key,
        pod=message.pod,
        group=message.group,
        numa_nodes=_numa_nodes(message.numa_nodes),
        demand=demand_from(message.demand),
        parts=tuple(
            Part(part.numa_node, part.cpu_milli, part.memory, tuple(sorted(part.hugepages.items())))
            for part in message.parts
        ),
        pool=_POOLS.get(message.pool, Pool.SHARED),
        alone=message.alone,
        size=message.size,
        workload=message.workload,
        cache_domain=_cpus(message.cache_domain),
        let_out=_numa_nodes(message.let_out),
    )


def allocation_to(allocation: Allocation) -> pb.Allocation:
    return pb.Allocation(
        container=allocation.container,
        name=allocation.name,
        pod=allocation.pod,
        reservation=allocation.reservation,
        cpus=str(allocation.cpus),
        mems=str(allocation.mems),
        exclusive=str(allocation.exclusive),
        externally_managed=allocation.externally_managed,
        open=allocation.open,
        stable=allocation.stable,
        rounded_up_milli=allocation.rounded_up,
    )


def allocation_from(message: pb.Allocation) -> Allocation:
    return Allocation(
        container=message.container,
        name=message.name,
        pod=message.pod,
        reservation=message.reservation,
        cpus=_cpus(message.cpus),
        mems=_numa_nodes(message.mems),
        exclusive=_cpus(message.exclusive),
        externally_managed=message.externally_managed,
        open=message.open,
        stable=message.stable,
        rounded_up=message.rounded_up_milli,
    )


def yielded_to(yielded: Yielded) -> pb.Yielded:
    return pb.Yielded(containers=yielded.containers, members=yielded.members, conflicts=yielded.conflicts)


def yielded_from(message: pb.Yielded) -> Yielded:
    return Yielded(message.containers, message.members, message.conflicts)


def live_from(message: pb.Report) -> Live:
    return Live(
        free_memory=dict(message.free_memory),
        free_hugepages={
            (free_hugepage.numa_node, free_hugepage.size): free_hugepage.free
            for free_hugepage in message.free_hugepages
        },
        used_cpu=dict(message.used_cpu),
        stalled=dict(message.stalled),
        hot={_cpus(cpus).mask: hot for cpus, hot in message.hot.items()},
        devices=devices_from(message.free_devices),
    )


def devices_from(messages: Iterable[pb.FreeDevices]) -> dict[tuple[str, int], int]:
    """Live.devices; PlacementError."""
    return {(row.resource, _numa_nodes(row.numa_nodes).mask): row.free for row in messages}


def devices_to(free: Mapping[tuple[str, int], int]) -> list[pb.FreeDevices]:
    """Live.devices."""
    return [
        pb.FreeDevices(resource=resource, numa_nodes=str(NumaSet(mask)), free=count)
        for (resource, mask), count in free.items()
    ]


def hot_to(hot: Mapping[int, bool]) -> dict[str, bool]:
    """Live.hot."""
    return {str(CpuSet(mask)): is_hot for mask, is_hot in hot.items()}


def pages_to(free: Mapping[tuple[int, int], int]) -> list[pb.FreePages]:
    """Live.free_hugepages."""
    return [pb.FreePages(numa_node=numa_node, size=size, free=amount) for (numa_node, size), amount in free.items()]


def kin_from(message: pb.Expect) -> Kin:
    return Kin(
        weights={row.pod: row.weight for row in message.kin},
        elsewhere=message.kin_elsewhere,
        expected=NumaSet.parse(message.numa_nodes),
        room_milli=message.room_milli,
        planned=NumaSet.parse(message.planned),
    )


def reason_to(reason: Reason) -> pb.Reason:
    return pb.Reason(what=reason.what, number=reason.number, effect=reason.effect)


def namespaces_to(namespaces: Namespaces) -> pb.Namespaces:
    return pb.Namespaces(settings=[_settings_to(name, own) for name, own in sorted(namespaces.settings.items())])


def _settings_to(name: str, settings: NamespaceTerms) -> pb.NamespaceSettings:
    quota = settings.quota
    return pb.NamespaceSettings(
        name=name,
        affinity_with=sorted(settings.affinity_with),
        max_exclusive_cpus=quota.exclusive_cpus,
        max_group_size=quota.group_size,
        keys=None if quota.keys is None else pb.AllowedKeys(names=sorted(quota.keys)),
    )


def namespaces_from(message: pb.Namespaces) -> Namespaces:
    return Namespaces({settings.name: _settings_from(settings) for settings in message.settings})


def _settings_from(message: pb.NamespaceSettings) -> NamespaceTerms:
    quota = Quota(
        message.max_exclusive_cpus if message.HasField("max_exclusive_cpus") else None,
        message.max_group_size if message.HasField("max_group_size") else None,
        frozenset(message.keys.names) if message.HasField("keys") else None,
    )
    return NamespaceTerms(frozenset(message.affinity_with), quota)
