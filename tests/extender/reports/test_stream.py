"""The report stream over real gRPC, from an enforcer's end."""

from __future__ import annotations

import grpc
import pytest

from placement.model.cpuset import CpuSet
from placement.state.occupancy import Allocation, fingerprint
from proto import bounds, convert
from proto import report_pb2 as pb
from standins.patience import until
from tests.extender.running import Extender, machine, reservation, welcome, whole_report

RESUME = welcome(resume=True)
ANEW = welcome(resume=False)


def ack(generation: int) -> pb.ToEnforcer:
    return pb.ToEnforcer(ack=pb.Ack(generation=generation))


def difference(base, generation, reservations, *, allocations=(), new=(), gone=()):
    return pb.Report(
        generation=generation,
        base_generation=base,
        fingerprint=fingerprint(reservations, allocations),
        reservations=map(convert.reservation_to, new),
        gone_reservations=gone,
    )


def test_differences_go_on_where_the_whole_report_ended(extender: Extender):
    enforcer = extender.enforcer("n1")
    a, b = reservation("a", "0"), reservation("b", "1")
    enforcer.report(machine(), a, generation=3)
    enforcer.send(report=difference(3, 4, [a, b], new=[b]))
    assert enforcer.next() == ack(4)
    enforcer.send(report=difference(4, 5, [b], gone=["a"]))
    assert enforcer.next() == ack(5)
    (node,) = extender.get("/api/v1/nodes")["nodes"]
    assert (node["generation"], node["pods"]) == (5, 1)


def test_a_stream_that_breaks_resumes_without_saying_it_all_again(extender: Extender):
    first = extender.enforcer("n1")
    a, b = reservation("a", "0"), reservation("b", "1")
    first.report(machine(), a, generation=3)
    first.close()
    again = extender.enforcer("n1", acked_generation=3, acked_fingerprint=fingerprint([a], []))
    assert again.next() == RESUME
    again.send(report=difference(3, 4, [a, b], new=[b]))
    assert again.next() == ack(4)


@pytest.mark.parametrize(
    "hello",
    [
        {"acked_generation": 2, "acked_fingerprint": fingerprint([reservation("a", "0")], [])},
        {"acked_generation": 3, "acked_fingerprint": 17},
        {"session": "session-2", "acked_generation": 3, "acked_fingerprint": fingerprint([reservation("a", "0")], [])},
    ],
    ids=["another generation", "another fingerprint", "another session"],
)
def test_everything_is_asked_for_when_the_ends_hold_different_things(extender: Extender, hello):
    extender.enforcer("n1").report(machine(), reservation("a", "0"), generation=3)
    assert extender.enforcer("n1", **hello).next() == ANEW


def test_a_difference_against_an_unknown_generation_asks_for_everything(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), generation=3)
    enforcer.send(report=difference(2, 4, []))
    assert enforcer.next() == ANEW
    enforcer.send(report=difference(4, 5, []))
    enforcer.send(machine=convert.machine_to(machine()))
    enforcer.send(report=whole_report(6))
    assert enforcer.next() == ack(6)


def test_a_fingerprint_that_does_not_match_asks_for_everything(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), generation=3)
    enforcer.send(report=difference(3, 4, [reservation("a", "0")]))
    assert enforcer.next() == ANEW
    assert 'reports_total{result="fingerprint"} 1.0' in extender.get("/metrics")


def test_a_whole_report_with_another_fingerprint_ends_the_stream(extender: Extender):
    enforcer = extender.enforcer("n1")
    assert enforcer.next() == ANEW
    enforcer.send(machine=convert.machine_to(machine()))
    report = whole_report(1, [reservation("a", "0")])
    report.fingerprint += 1
    enforcer.send(report=report)
    error = enforcer.failure()
    assert (error.code(), error.details()) == (INVALID, "Report: its fingerprint differs from what it gives here")


def test_a_heartbeat_of_another_generation_asks_for_everything(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), generation=3)
    enforcer.send(heartbeat=pb.Heartbeat(generation=3))
    enforcer.send(heartbeat=pb.Heartbeat(generation=4))
    assert enforcer.next() == ANEW


def test_a_second_stream_of_a_node_replaces_the_first(extender: Extender):
    first = extender.enforcer("n1")
    first.report(machine())
    second = extender.enforcer("n1", session="session-2")
    second.report(machine(), reservation("a", "0"))
    error = first.failure()
    assert error.code() is grpc.StatusCode.ABORTED
    assert error.details() == "another stream of node n1 took over"
    (node,) = extender.get("/api/v1/nodes")["nodes"]
    assert (node["session"], node["connected"], node["pods"]) == ("session-2", True, 1)


def test_a_node_that_left_is_known_still_but_not_connected(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    enforcer.close()
    until(lambda: not extender.get("/api/v1/nodes")["nodes"][0]["connected"], "the stream's end is seen")
    assert extender.get("/api/v1/nodes")["nodes"][0]["live"]


def test_an_enforcer_that_is_not_registered_with_the_runtime_is_not_live(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    report = difference(1, 2, [])
    report.registered = False
    enforcer.send(report=report)
    assert enforcer.next() == ack(2)
    assert extender.get("/api/v1/nodes")["nodes"][0]["live"] is False


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


INVALID, EXHAUSTED = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED

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
    "cache domain": (within_strange_cpus(), "Report: reservation a is within CPUs that the machine does not have"),
    "hot caches": (
        whole_report(1, hot_caches={400: True}),
        "Report.hot_caches names CPU 400, which the machine does not have",
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


def decision(pod: str, event: str) -> pb.DecisionRecord:
    return pb.DecisionRecord(
        pod=pod, namespace="default", pod_name=f"name-{pod}", container=f"c-{pod}", container_name="main", event=event,
        numa_nodes="0", reasons=[pb.Reason(what="no kin here", effect="the emptiest NUMA node")],
    )  # fmt: skip


def test_what_was_decided_before_our_time_is_explained_and_not_counted(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), reservation("a", "0"), earlier=[decision("a", "create")])
    result = extender.get("/api/v1/explain?namespace=default&pod=name-a")
    assert (result["scored"], [entry["event"] for entry in result["happened"]]) == (None, ["create"])
    assert result["happened"][0]["reasons"] == ["no kin here: the emptiest NUMA node"]
    assert "numakin_extender_predictions_total{" not in extender.get("/metrics")


def test_what_is_known_already_is_not_doubled_by_being_told_again(extender: Extender):
    first = extender.enforcer("n1")
    first.report(machine(), reservation("a", "0"), decisions=[decision("a", "create"), decision("a", "synchronize")])
    first.close()
    again = extender.enforcer("n1", "session-2")
    again.report(machine(), reservation("a", "0"), earlier=[decision("a", "synchronize")])
    result = extender.get("/api/v1/explain?namespace=default&pod=name-a")
    assert [entry["event"] for entry in result["happened"]] == ["create", "synchronize"]
