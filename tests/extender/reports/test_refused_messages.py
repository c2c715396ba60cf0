"""A message that can't be true or is too much ends the stream, and says why."""

from __future__ import annotations

import pytest

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.state.occupancy import Allocation
from numakin.wire import bounds, convert
from numakin.wire import report_pb2 as pb
from tests.extender.reports.differences import ANEW, EXHAUSTED, INVALID
from tests.extender.running import Extender, machine, reservation, whole_report


def machine_with(**changes) -> pb.Machine:
    message = convert.machine_to(machine())
    for name, value in changes.items():
        getattr(message, name).extend(value) if isinstance(value, list) else setattr(message, name, value)
    return message


def overlapping() -> pb.Machine:
    message = convert.machine_to(machine())
    message.numa_nodes[1].cpus = "7-9"
    return message


def far_away() -> pb.Report:
    return whole_report(1, [reservation("a", "7")])


def within_strange_cpus() -> pb.Report:
    report = whole_report(1, [reservation("a", "0")])
    report.reservations[0].cache_domain = "400-403"
    return report


def estimates(*names: str) -> pb.Report:
    report = whole_report(1, [reservation("a", "0")])
    report.reservations[0].demand.estimated[:] = names
    return report


def bad_cpus() -> pb.Report:
    report = whole_report(1, [], [Allocation("c", "main", "a", "a", CpuSet.parse("1"))])
    report.allocations[0].cpus = "1-x"
    return report


REFUSED = {
    "empty": (pb.FromEnforcer(), INVALID, "the message is empty or of a kind that this version does not know"),
    "second hello": (pb.FromEnforcer(hello=pb.Hello(node="n1", session="s")), INVALID, "Hello comes once, first"),
    "report before machine": (pb.FromEnforcer(report=whole_report(1)), INVALID, "a whole Report comes after Machine"),
    "no NUMA node": (
        pb.FromEnforcer(machine=pb.Machine()),
        INVALID,
        "Machine: a machine has at least one NUMA node",
    ),
    "a CPU twice": (
        pb.FromEnforcer(machine=overlapping()),
        INVALID,
        "Machine: CPUs 7 are on NUMA node 1 and on another",
    ),
    "long name": (
        pb.FromEnforcer(machine=machine_with(name="x" * 1025)),
        EXHAUSTED,
        "Machine.name has 1025 characters; the bound is 1024",
    ),
    "many cores": (
        pb.FromEnforcer(machine=machine_with(cores=["1"] * 8193)),
        EXHAUSTED,
        f"Machine.cores has 8209 entries; the bound is {bounds.CPU_GROUPS}",
    ),
}


@pytest.mark.parametrize(("message", "code", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_a_bad_message_ends_the_stream_with_its_name(extender: Extender, message, code, text):
    enforcer = extender.enforcer("n1")
    assert enforcer.next() == ANEW
    enforcer.send(**{field.name: value for field, value in message.ListFields()})
    error = enforcer.failure()
    assert (error.code(), error.details()) == (code, text)


CONTRADICTIONS = {
    "unknown NUMA node": (far_away(), "Report: reservation a is on NUMA node 7, which the machine does not have"),
    "bad CPUs": (bad_cpus(), "Report: '1-x' is not a list of ids: '1-x' is neither an id nor a range"),
    "free memory": (
        whole_report(1, free_memory={9: 1}),
        "Report.free_memory names NUMA node 9, which the machine does not have",
    ),
    "free hugepages": (
        whole_report(1, free_hugepages=[pb.FreePages(numa_node=9, size=1 << 30)]),
        "Report.free_hugepages names NUMA node 9, which the machine does not have",
    ),
    "free devices": (
        whole_report(1, free_devices=[pb.FreeDevices(resource="v/gpu", numa_nodes="9", free=1)]),
        "Report: a device is on NUMA node 9, which the machine does not have",
    ),
    "a device's resource": (
        whole_report(1, free_devices=[pb.FreeDevices(resource="<v>")]),
        "Report.free_devices is no name that the API server takes: '<v>'",
    ),
    "cache domain": (within_strange_cpus(), "Report: reservation a is within CPUs that the machine does not have"),
    "hot CPUs": (
        whole_report(1, hot={"0,400": True}),
        "Report.hot names CPUs 400, which the machine does not have",
    ),
    "pressure": (whole_report(1, stalled={0: 1.5}), "Report.stalled of NUMA node 0 is 1.5; it is a share, 0 to 1"),
}

OVERSIZED = {
    "many estimates": (estimates(*["cpu"] * 17), "Reservation.demand.estimated has 17 entries; the bound is 16"),
    "a long estimate": (estimates("x" * 254), "Reservation.demand.estimated has 254 characters; the bound is 253"),
}

REFUSED_REPORTS = {
    name: (report, code, text)
    for code, reports in ((INVALID, CONTRADICTIONS), (EXHAUSTED, OVERSIZED))
    for name, (report, text) in reports.items()
}


@pytest.mark.parametrize(("report", "code", "text"), REFUSED_REPORTS.values(), ids=REFUSED_REPORTS.keys())
def test_a_report_that_contradicts_the_machine_or_is_over_a_bound_ends_the_stream(
    extender: Extender, report, code, text
):
    enforcer = extender.enforcer("n1")
    assert enforcer.next() == ANEW
    enforcer.send(machine=convert.machine_to(machine()))
    enforcer.send(report=report)
    error = enforcer.failure()
    assert (error.code(), error.details()) == (code, text)


def test_the_first_message_must_be_hello_and_name_the_node(extender: Extender):
    enforcer = extender.enforcer("")
    assert enforcer.failure().details() == "Hello names no node"
    enforcer = extender.enforcer("n1", session="")
    assert enforcer.failure().details() == "Hello names no session"


def test_a_flood_of_messages_ends_the_stream(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    for _ in range(bounds.MESSAGE_BURST * 3):
        enforcer.send(heartbeat=pb.Heartbeat(generation=1))
    error = enforcer.failure()
    assert (error.code(), error.details()) == (EXHAUSTED, "more than 50 messages a second")


def test_a_message_over_the_size_bound_is_refused(extender: Extender):
    enforcer = extender.enforcer("n1")
    assert enforcer.next() == ANEW
    enforcer.send(machine=pb.Machine(name="x" * (bounds.MESSAGE_BYTES + 1)))
    assert enforcer.failure().code() is EXHAUSTED
    assert extender.get("/healthz") == "ok\n"
