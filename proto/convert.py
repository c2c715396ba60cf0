"""Between placement's values and the report stream's messages: the one place that knows both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from placement.cpuset import CpuSet, NumaSet
from placement.decide import Kin, Reason
from placement.demand import Demand
from placement.live import Live
from placement.occupancy import Holding, Part, Seat
from placement.rules import Rules
from placement.topology import Machine, NumaNode
from placement.wishes import OptIn, Policy, Pool
from proto import report_pb2 as pb

DEFAULT_RULES = Rules()

_POOLS = {str(pool): pool for pool in Pool}
_POLICIES = {str(policy): policy for policy in Policy}


def machine_to(machine: Machine, reserved: CpuSet = CpuSet(), rules: Rules = DEFAULT_RULES) -> pb.Machine:
    return pb.Machine(
        name=machine.name,
        numa_nodes=[
            pb.NumaNode(
                id=node.id,
                cpus=str(node.cpus),
                memory=node.memory,
                distances=[node.distances[other.id] for other in machine.numa_nodes],
                hugepages=dict(node.hugepages),
            )
            for node in machine.numa_nodes
        ],
        cores=[str(core) for core in machine.cores],
        caches=[str(cache) for cache in machine.caches],
        sockets=[str(socket) for socket in machine.sockets],
        reserved_cpus=str(reserved),
        rules=pb.Rules(
            prefer_closest_numa_nodes=rules.prefer_closest_numa_nodes,
            max_allowable_numa_nodes=rules.max_allowable_numa_nodes,
            everyone=rules.everyone,
        ),
    )


def rules_from(message: pb.Machine) -> Rules:
    """The operator's settings that came with a machine; the defaults for what was not told."""
    told = message.rules
    return Rules(
        prefer_closest_numa_nodes=told.prefer_closest_numa_nodes
        if told.HasField("prefer_closest_numa_nodes")
        else DEFAULT_RULES.prefer_closest_numa_nodes,
        max_allowable_numa_nodes=told.max_allowable_numa_nodes,
        everyone=told.everyone,
    )


def machine_from(message: pb.Machine) -> Machine:
    """PlacementError when the message is not a machine."""
    ids = [node.id for node in message.numa_nodes]
    return Machine(
        numa_nodes=tuple(
            NumaNode(
                id=node.id,
                cpus=CpuSet.parse(node.cpus),
                memory=node.memory,
                distances=dict(zip(ids, node.distances, strict=False)),
                hugepages=dict(node.hugepages),
            )
            for node in message.numa_nodes
        ),
        cores=tuple(CpuSet.parse(core) for core in message.cores),
        caches=tuple(CpuSet.parse(cache) for cache in message.caches),
        sockets=tuple(CpuSet.parse(socket) for socket in message.sockets),
        name=message.name,
    )


def demand_to(demand: Demand) -> pb.Demand:
    return pb.Demand(
        cpu_milli=demand.cpu_milli,
        memory=demand.memory,
        memory_limit=demand.memory_limit,
        hugepages=dict(demand.hugepages),
        estimated=sorted(demand.estimated),
    )


def demand_from(message: pb.Demand) -> Demand:
    return Demand(
        cpu_milli=message.cpu_milli,
        memory=message.memory,
        memory_limit=message.memory_limit if message.HasField("memory_limit") else None,
        hugepages=dict(message.hugepages),
        estimated=frozenset(message.estimated),
    )


def opt_in_from(message: pb.ContainerDemand, own: OptIn) -> OptIn:
    """own: what the container's annotations say, which goes for what was not told, or not in words known here."""
    return replace(own, policy=_POLICIES.get(message.policy, own.policy), size=message.size or own.size)


def seat_to(seat: Seat) -> pb.Seat:
    return pb.Seat(
        key=seat.key,
        pod=seat.pod,
        group=seat.group,
        numa_nodes=str(seat.numa_nodes),
        demand=demand_to(seat.demand),
        parts=[pb.Part(numa_node=one, cpu_milli=milli, memory=memory) for one, milli, memory in seat.parts],
        pool="" if seat.pool is Pool.SHARED else seat.pool,
        alone=seat.alone,
        size=seat.size,
        workload=seat.workload,
    )


def seat_from(message: pb.Seat) -> Seat:
    """PlacementError when the message is not a seat; a pool that is not known here is the shared one."""
    return Seat(
        key=message.key,
        pod=message.pod,
        group=message.group,
        numa_nodes=NumaSet.parse(message.numa_nodes),
        demand=demand_from(message.demand),
        parts=tuple(Part(one.numa_node, one.cpu_milli, one.memory) for one in message.parts),
        pool=_POOLS.get(message.pool, Pool.SHARED),
        alone=message.alone,
        size=message.size,
        workload=message.workload,
    )


def holding_to(holding: Holding) -> pb.Holding:
    return pb.Holding(
        container=holding.container,
        name=holding.name,
        pod=holding.pod,
        seat=holding.seat,
        cpus=str(holding.cpus),
        mems=str(holding.mems),
        exclusive=str(holding.exclusive),
        foreign=holding.foreign,
    )


def holding_from(message: pb.Holding) -> Holding:
    return Holding(
        container=message.container,
        name=message.name,
        pod=message.pod,
        seat=message.seat,
        cpus=CpuSet.parse(message.cpus),
        mems=NumaSet.parse(message.mems),
        exclusive=CpuSet.parse(message.exclusive),
        foreign=message.foreign,
    )


def live_from(message: pb.Report) -> Live:
    return Live(
        free_memory=dict(message.free_memory),
        free_hugepages={(one.numa_node, one.size): one.free for one in message.free_hugepages},
        used_cpu=dict(message.used_cpu),
        stalled=dict(message.stalled),
    )


def pages_to(free: Mapping[tuple[int, int], int]) -> list[pb.FreePages]:
    """Live.free_hugepages; its other figures are maps there too."""
    return [pb.FreePages(numa_node=one, size=size, free=amount) for (one, size), amount in free.items()]


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
