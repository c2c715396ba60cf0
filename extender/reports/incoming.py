"""Messages of the report stream, checked against the written bounds and turned into the cluster's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from functools import lru_cache

from extender.state.enforcer_health import DeviceRow, EnforcerHealth, ThreadState
from extender.state.node_report import DecisionRow, Report
from numakin.placement.decide.decide import Reason
from numakin.placement.model import names
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.errors import PlacementError
from numakin.placement.model.live_usage import Live
from numakin.placement.model.topology import Machine
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation
from numakin.placement.state.yielded import Yielded
from numakin.placement.traffic.graph import KINDS, Flow
from numakin.wire import bounds, convert
from numakin.wire import report_pb2 as pb

OUTCOMES = {pb.UNPROMISED: "unpromised", pb.KEPT: "kept", pb.DECLINED: "declined", pb.LATE: "late"}


MACHINES = 256
"""Different machines that are kept beyond their nodes."""

MACHINE_BYTES = 256 << 10
"""The largest message of a machine that is kept: one of 1,024 CPUs has less than an eighth of it."""


DEVICES = 4_096
"""Different devices that are kept beyond their nodes."""


class OutOfBounds(ValueError):
    """A message over one of the written bounds; the text names the bound."""


class BadMessage(ValueError):
    """A message that contradicts itself or the machine it is about."""


def hello(message: pb.Hello) -> None:
    """Checks the first message of a stream."""
    _text("Hello.node", message.node, bounds.NAME_LENGTH)
    _text("Hello.session", message.session, bounds.ID_LENGTH)
    _text("Hello.version", message.version, bounds.TEXT_LENGTH)
    if not message.node or not message.session:
        raise BadMessage("Hello names no " + ("session" if message.node else "node"))
    _name("Hello.node", message.node, names.is_object)
    _name("Hello.session", message.session, names.is_id)
    _printable("Hello.version", message.version)


def machine(message: pb.Machine) -> tuple[Machine, Occupancy]:
    """The machine, and its occupancy without containers: with its reserved CPUs and its operator's rules.

    Equal messages give the same values: of a cluster's thousands of machines most are alike.
    """
    message.DiscardUnknownFields()
    body = message.SerializeToString(deterministic=True)
    return _kept_machine(body) if len(body) <= MACHINE_BYTES else _machine(message)


@lru_cache(maxsize=MACHINES)
def _kept_machine(body: bytes) -> tuple[Machine, Occupancy]:
    return _machine(pb.Machine.FromString(body))


def _machine(message: pb.Machine) -> tuple[Machine, Occupancy]:
    _text("Machine.name", message.name, bounds.TEXT_LENGTH)
    _count("Machine.numa_nodes", message.numa_nodes, bounds.NUMA_NODES)
    for node in message.numa_nodes:
        _text("NumaNode.cpus", node.cpus, bounds.ID_LIST_LENGTH)
        _text("NumaNode.isolated_cpus", node.isolated_cpus, bounds.ID_LIST_LENGTH)
        _count("NumaNode.distances", node.distances, bounds.NUMA_NODES)
        _count("NumaNode.hugepages", node.hugepages, bounds.HUGEPAGE_SIZES)
    for kind in ("cores", "caches", "clusters", "sockets"):
        groups = getattr(message, kind)
        _count(f"Machine.{kind}", groups, bounds.CPU_GROUPS)
        for cpus in groups:
            _text(f"Machine.{kind}", cpus, bounds.ID_LIST_LENGTH)
    _text("Machine.reserved_cpus", message.reserved_cpus, bounds.ID_LIST_LENGTH)
    try:
        machine = convert.machine_from(message)
        return machine, convert.empty_from(message).on(machine)
    except PlacementError as bad:
        raise BadMessage(f"Machine: {bad}") from bad


def report(message: pb.Report, of: Machine) -> Report:
    """The report of a node with this machine."""
    for kind, most in _COUNTS.items():
        _count(f"Report.{kind}", getattr(message, kind), most)
    for kind in ("gone_reservations", "gone_allocations"):
        for key in getattr(message, kind):
            _name(f"Report.{kind}", key, names.is_id)
    try:
        return Report(
            generation=message.generation,
            base=message.base_generation,
            fingerprint=message.fingerprint,
            reservations=tuple(_reservation(reservation, of) for reservation in message.reservations),
            gone_reservations=tuple(message.gone_reservations),
            allocations=tuple(_allocation(allocation, of) for allocation in message.allocations),
            gone_allocations=tuple(message.gone_allocations),
            live=_live(message, of),
            decisions=tuple(_decision(decision) for decision in message.decisions),
            earlier=tuple(_decision(decision) for decision in message.earlier),
            registered=message.registered if message.HasField("registered") else None,
            yielded=_yielded(message.yielded) if message.HasField("yielded") else None,
        )
    except PlacementError as bad:
        raise BadMessage(f"Report: {bad}") from bad


def health(message: pb.Health) -> EnforcerHealth:
    _count("Health.threads", message.threads, bounds.THREADS)
    for name in ("collector", "runtime", "cpuset_owners"):
        _text(f"Health.{name}", getattr(message, name), bounds.TEXT_LENGTH)
    for thread in message.threads:
        _text("ThreadHealth.name", thread.name, bounds.TEXT_LENGTH)
        _text("ThreadHealth.error", thread.error, bounds.TEXT_LENGTH)
    threads = (
        ThreadState(thread.name, thread.since_success_s, thread.stale, thread.failures, thread.error)
        for thread in message.threads
    )
    _count("Health.devices", message.devices, bounds.DEVICES)
    message.DiscardUnknownFields()
    devices = tuple(_device(device.SerializeToString(deterministic=True)) for device in message.devices)
    return EnforcerHealth(
        message.collector, message.runtime, tuple(threads), devices, message.devices_left_out, message.cpuset_owners
    )


@lru_cache(maxsize=DEVICES)
def _device(body: bytes) -> DeviceRow:
    """Equal messages give the same value, as with machines."""
    message = pb.Device.FromString(body)
    _count("Device.names", message.names, bounds.DEVICE_NAMES)
    for name in ("address", "kind", "driver"):
        _text(f"Device.{name}", getattr(message, name), bounds.NAME_LENGTH)
    for interface in message.names:
        _text("Device.names", interface, bounds.NAME_LENGTH)
    numa_node = message.numa_node if message.HasField("numa_node") else None
    return DeviceRow(message.address, message.kind, message.driver, tuple(message.names), numa_node)


def uses(message: pb.Traffic) -> Mapping[str, int]:
    """Millicores that a pod of each workload uses."""
    _count("Traffic.uses", message.uses, bounds.USES)
    for workload, milli in message.uses.items():
        _text("Traffic.uses", workload, bounds.ID_LENGTH)
        _name("Traffic.uses", workload, names.is_workload)
        if not 0 < milli <= bounds.USE_MILLI:
            raise BadMessage(f"Traffic.uses of {workload} is {milli} millicores; it is 1 to {bounds.USE_MILLI}")
    return dict(message.uses)


def traffic(message: pb.Traffic) -> tuple[Flow, ...]:
    """The flows; those of kinds that this version does not know are left out."""
    _count("Traffic.flows", message.flows, bounds.FLOWS)
    for flow in message.flows:
        for name in ("source", "target"):
            end = getattr(flow, name)
            _text(f"Flow.{name}", end, bounds.ID_LENGTH)
            if not end:
                raise BadMessage(f"Traffic: a flow has no {name}")
            _name(f"Flow.{name}", end, names.is_id)
    return tuple(
        Flow(flow.source, flow.target, flow.kind, flow.bytes, flow.messages, flow.by_server)
        for flow in message.flows
        if flow.kind in KINDS
    )


_RESERVATION_NAMES = {
    "key": names.is_id, "pod": names.is_id, "group": names.is_group, "workload": names.is_workload,
}  # fmt: skip
_ALLOCATION_NAMES = {
    "container": names.is_id, "name": names.is_label, "pod": names.is_id, "reservation": names.is_id,
}  # fmt: skip
_DECISION_NAMES = {
    "pod": names.is_id, "namespace": names.is_label, "pod_name": names.is_object, "container": names.is_id,
    "container_name": names.is_label, "event": names.is_label,
}  # fmt: skip

_COUNTS = {
    "reservations": bounds.RESERVATIONS,
    "gone_reservations": bounds.RESERVATIONS,
    "allocations": bounds.ALLOCATIONS,
    "gone_allocations": bounds.ALLOCATIONS,
    "free_memory": bounds.NUMA_NODES,
    "used_cpu": bounds.NUMA_NODES,
    "stalled": bounds.NUMA_NODES,
    "hot": bounds.CPU_GROUPS,
    "free_hugepages": bounds.NUMA_NODES * bounds.HUGEPAGE_SIZES,
    "free_devices": bounds.FREE_DEVICES,
    "decisions": bounds.DECISIONS,
    "earlier": bounds.DECISIONS,
}


def _yielded(message: pb.Yielded) -> Yielded:
    if message.members > bounds.ALLOCATIONS:
        raise OutOfBounds(f"Report.yielded counts {message.members} containers; the bound is {bounds.ALLOCATIONS}")
    if not message.conflicts <= message.containers <= message.members:
        raise BadMessage("Report.yielded: each of its parts is at most as many as the next")
    return convert.yielded_from(message)


def _live(message: pb.Report, of: Machine) -> Live:
    for cpus in message.hot:
        _text("Report.hot", cpus, bounds.ID_LIST_LENGTH)
    for devices in message.free_devices:
        _text("Report.free_devices", devices.numa_nodes, bounds.ID_LIST_LENGTH)
        _name("Report.free_devices", devices.resource, names.is_label_key)
    live = convert.live_from(message)
    known = {node.id for node in of.numa_nodes}
    figures = {kind: getattr(live, kind) for kind in ("free_memory", "used_cpu", "stalled")}
    for kind, numa_nodes in {**figures, "free_hugepages": [numa_node for numa_node, _ in live.free_hugepages]}.items():
        for numa_node in numa_nodes:
            if numa_node not in known:
                raise BadMessage(f"Report.{kind} names NUMA node {numa_node}, which the machine does not have")
    for _, mask in live.devices:
        _on_machine("a device", NumaSet(mask), of)
    for mask in live.hot:
        if stray := CpuSet(mask) - of.cpus:
            raise BadMessage(f"Report.hot names CPUs {stray}, which the machine does not have")
    for numa_node, share in live.stalled.items():
        if not 0 <= share <= 1:
            raise BadMessage(f"Report.stalled of NUMA node {numa_node} is {share}; it is a share, 0 to 1")
    return live


def _reservation(message: pb.Reservation, of: Machine) -> Reservation:
    for name, rule in _RESERVATION_NAMES.items():
        _name(f"Reservation.{name}", getattr(message, name), rule)
    _printable("Reservation.pool", message.pool)
    for name in ("numa_nodes", "cache_domain", "let_out"):
        _text(f"Reservation.{name}", getattr(message, name), bounds.ID_LIST_LENGTH)
    _count("Reservation.demand.hugepages", message.demand.hugepages, bounds.HUGEPAGE_SIZES)
    _count("Reservation.demand.estimated", message.demand.estimated, bounds.ESTIMATES)
    for estimate in message.demand.estimated:
        _text("Reservation.demand.estimated", estimate, bounds.NAME_LENGTH)
    _count("Reservation.parts", message.parts, bounds.NUMA_NODES)
    for part in message.parts:
        _count("Reservation.parts.hugepages", part.hugepages, bounds.HUGEPAGE_SIZES)
    reservation = convert.reservation_from(message)
    _on_machine(f"reservation {reservation.key}", reservation.numa_nodes, of)
    _on_machine(f"reservation {reservation.key}", NumaSet.of(part.numa_node for part in reservation.parts), of)
    _on_machine(f"reservation {reservation.key}", reservation.let_out, of)
    if not reservation.cache_domain <= of.cpus:
        raise BadMessage(f"Report: reservation {reservation.key} is within CPUs that the machine does not have")
    return reservation


def _allocation(message: pb.Allocation, of: Machine) -> Allocation:
    for name, rule in _ALLOCATION_NAMES.items():
        _name(f"Allocation.{name}", getattr(message, name), rule)
    for name in ("cpus", "mems", "exclusive"):
        _text(f"Allocation.{name}", getattr(message, name), bounds.ID_LIST_LENGTH)
    allocation = convert.allocation_from(message)
    _on_machine(f"container {allocation.container[:12]}", allocation.mems, of)
    return allocation


def _decision(message: pb.DecisionRecord) -> DecisionRow:
    _count("DecisionRecord.reasons", message.reasons, bounds.REASONS)
    for reason in message.reasons:
        for name in ("what", "number", "effect"):
            _text(f"Reason.{name}", getattr(reason, name), bounds.TEXT_LENGTH)
            _printable(f"Reason.{name}", getattr(reason, name))
    for name, rule in _DECISION_NAMES.items():
        _name(f"DecisionRecord.{name}", getattr(message, name), rule)
    for name in ("numa_nodes", "cpus", "mems", "nominated"):
        _text(f"DecisionRecord.{name}", getattr(message, name), bounds.ID_LIST_LENGTH)
    return DecisionRow(
        pod=message.pod,
        namespace=message.namespace,
        name=message.pod_name,
        container=message.container_name,
        event=message.event,
        numa_nodes=message.numa_nodes,
        cpus=message.cpus,
        mems=message.mems,
        score=message.score,
        reasons=tuple(Reason(reason.what, reason.number, reason.effect) for reason in message.reasons),
        outcome=OUTCOMES.get(message.outcome, "unpromised"),
        nominated=message.nominated,
        generation=message.generation,
    )


def _on_machine(what: str, numa_nodes: NumaSet, of: Machine) -> None:
    if unknown := numa_nodes - of.ids:
        raise BadMessage(f"Report: {what} is on NUMA node {unknown.lowest}, which the machine does not have")


def _name(what: str, text: str, rule: Callable[[str], bool]) -> None:
    """A name that is not set is not wrong."""
    if text and not rule(text):
        raise BadMessage(f"{what} is no name that the API server takes: {text[:40]!a}")


def _printable(what: str, text: str) -> None:
    if not text.isprintable():
        raise BadMessage(f"{what} has characters that can't be printed: {text[:40]!a}")


def _text(what: str, text: str, most: int) -> None:
    if len(text) > most:
        raise OutOfBounds(f"{what} has {len(text)} characters; the bound is {most}")


def _count(what: str, items: Sized, most: int) -> None:
    if len(items) > most:
        raise OutOfBounds(f"{what} has {len(items)} entries; the bound is {most}")
