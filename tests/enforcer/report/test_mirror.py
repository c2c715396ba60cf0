"""Each replica of the extender is told everything once, and then only what is new, however often its stream breaks."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from enforcer.local import report_differences
from enforcer.report.backlog import ReportBacklog
from enforcer.report.mirror import Mirror
from extender.reports import incoming
from extender.state.node_view import NodeView
from placement.model.cpuset import CpuSet, NumaSet
from placement.model.demand import Demand
from placement.model.live_usage import Live
from placement.model.rules import Rules
from placement.optin.options import Pool
from placement.state.occupancy import Allocation, Occupancy, Reservation, fingerprint
from proto import convert
from proto import local_pb2 as local
from proto import report_pb2 as pb
from tests import machines


def occupied(occupancy: Occupancy, name: str) -> Occupancy:
    reservation = Reservation(name, name, "ns/web", NumaSet.parse("0"), Demand(1000, 1 << 20))
    return occupancy.with_reservation(reservation).with_allocation(
        Allocation(f"c-{name}", "app", name, name, CpuSet.parse("0-3"))
    )


def started(occupancy: Occupancy, session: str = "s1") -> Mirror:
    mirror = Mirror()
    mirror.started(local.Start(node="n1", session=session, machine=pb.Machine(name="m")))
    mirror.reported(report_differences.report(None, report_differences.NodeState(occupancy, registered=True)))
    return mirror


def changed(mirror: Mirror, before: Occupancy, after: Occupancy, *pods: str) -> None:
    decisions = [pb.DecisionRecord(pod=pod) for pod in pods]
    mirror.reported(
        report_differences.report(
            report_differences.NodeState(before, registered=True),
            report_differences.NodeState(after, registered=True),
            decisions,
        )
    )


def welcomed(mirror: Mirror) -> ReportBacklog:
    backlog = ReportBacklog(mirror)
    backlog.welcomed(pb.Welcome())
    return backlog


def reports(backlog: ReportBacklog) -> list[pb.Report]:
    return [change.report for change in backlog.changes() if change.HasField("report")]


def test_a_new_extender_gets_the_machine_and_everything() -> None:
    backlog = ReportBacklog(started(occupied(Occupancy(generation=1), "a")))
    assert backlog.hello("1").hello.acked_generation == 0
    backlog.welcomed(pb.Welcome())
    machine, report = backlog.changes()
    assert machine.machine.name == "m"
    assert report.report.base_generation == 0
    assert [reservation.key for reservation in report.report.reservations] == ["a"]
    assert report.report.registered


def test_an_unchanged_node_has_no_news() -> None:
    backlog = welcomed(started(Occupancy(generation=1)))
    assert backlog.changes()
    assert not backlog.changes()
    assert backlog.heartbeat().ByteSize() <= 8


def test_nothing_is_told_of_a_node_before_its_hook_has_told_everything() -> None:
    mirror = Mirror()
    mirror.started(local.Start(node="n1", session="s1"))
    backlog = welcomed(mirror)
    assert not backlog.changes()
    mirror.reported(
        report_differences.report(None, report_differences.NodeState(Occupancy(generation=1), registered=True))
    )
    assert backlog.changes()


def test_a_change_is_told_as_a_difference() -> None:
    before = occupied(Occupancy(generation=1), "a")
    mirror = started(before)
    backlog = welcomed(mirror)
    backlog.changes()
    after = occupied(before, "b")
    changed(mirror, before, after)
    (report,) = reports(backlog)
    assert (report.base_generation, report.generation) == (before.generation, after.generation)
    assert [reservation.key for reservation in report.reservations] == ["b"]


def test_live_figures_and_the_runtimes_word_are_told_though_the_placements_are_the_same() -> None:
    before = Occupancy(live=Live({0: 7, 1: 7}), generation=1)
    mirror = started(before)
    backlog = welcomed(mirror)
    backlog.changes()
    after = before.with_live(Live({0: 7, 1: 5}, {(0, 2 << 20): 0}, {1: 900}, {1: 0.5}, {8: True}))
    mirror.reported(
        report_differences.report(
            report_differences.NodeState(before, registered=True),
            report_differences.NodeState(after, registered=False),
            (),
        )
    )
    (report,) = reports(backlog)
    assert (report.registered, report.generation) == (False, 1)
    assert convert.live_from(report) == Live({1: 5}, {(0, 2 << 20): 0}, {1: 900}, {1: 0.5}, {8: True})
    assert mirror.occupancy.live == after.live
    assert not backlog.changes()


def test_what_an_earlier_hook_read_is_forgotten() -> None:
    mirror = started(Occupancy(live=Live({0: 7}), generation=1))
    mirror.started(local.Start(node="n1", session="s2", machine=pb.Machine(name="other")))
    mirror.reported(
        report_differences.report(
            None, report_differences.NodeState(Occupancy(live=Live(used_cpu={0: 1}), generation=1), registered=True)
        )
    )
    assert mirror.occupancy.live == Live(used_cpu={0: 1})


def test_an_extender_that_still_knows_us_gets_only_what_it_missed() -> None:
    before = occupied(Occupancy(generation=1), "a")
    mirror = started(before)
    backlog = welcomed(mirror)
    backlog.changes()
    backlog.acknowledged(pb.Ack(generation=before.generation))
    after = occupied(before, "b")
    changed(mirror, before, after)
    backlog.changes()  # goes out, and is lost with the stream
    hello = backlog.hello("1").hello
    assert hello.acked_generation == before.generation
    assert hello.acked_fingerprint == fingerprint(before.reservations.values(), before.allocations.values())
    backlog.welcomed(pb.Welcome(resume=True))
    (report,) = reports(backlog)
    assert report.base_generation == before.generation
    assert [reservation.key for reservation in report.reservations] == ["b"]


def test_decisions_that_were_lost_with_the_stream_are_told_again() -> None:
    before = Occupancy(generation=1)
    mirror = started(before)
    backlog = welcomed(mirror)
    backlog.changes()
    backlog.acknowledged(pb.Ack(generation=1))
    after = occupied(before, "a")
    changed(mirror, before, after, "a")
    backlog.changes()  # goes out, and is lost with the stream
    backlog.welcomed(pb.Welcome(resume=True))
    (report,) = reports(backlog)
    assert [decision.pod for decision in report.decisions] == ["a"]
    backlog.acknowledged(pb.Ack(generation=after.generation))
    backlog.welcomed(pb.Welcome(resume=True))
    assert not backlog.changes()


def test_another_hook_session_starts_from_nothing() -> None:
    mirror = started(occupied(Occupancy(generation=1), "a"))
    backlog = welcomed(mirror)
    backlog.changes()
    backlog.acknowledged(pb.Ack(generation=3))
    mirror.started(local.Start(node="n1", session="s2", machine=pb.Machine(name="other")))
    assert backlog.hello("1").hello.acked_generation == 0
    assert not backlog.changes()
    mirror.reported(
        report_differences.report(None, report_differences.NodeState(Occupancy(generation=1), registered=True))
    )
    machine, report = backlog.changes()
    assert (machine.machine.name, report.report.base_generation) == ("other", 0)


class TestReplicas:
    """What one replica has received makes no difference for another."""

    def test_each_is_told_everything_and_every_decision(self) -> None:
        before = Occupancy(generation=1)
        mirror = started(before)
        backlogs = [welcomed(mirror) for _ in range(2)]
        for backlog in backlogs:
            assert [report.base_generation for report in reports(backlog)] == [0]
        changed(mirror, before, occupied(before, "a"), "a")
        for backlog in backlogs:
            (report,) = reports(backlog)
            assert [reservation.key for reservation in report.reservations] == ["a"]
            assert [decision.pod for decision in report.decisions] == ["a"]

    def test_one_that_breaks_holds_up_no_other(self) -> None:
        before = Occupancy(generation=1)
        mirror = started(before)
        broken, other = welcomed(mirror), welcomed(mirror)
        for entry in (broken, other):
            entry.changes()
            entry.acknowledged(pb.Ack(generation=1))
        after = occupied(before, "a")
        changed(mirror, before, after, "a")
        other.changes()
        other.acknowledged(pb.Ack(generation=after.generation))
        assert other.hello("1").hello.acked_generation == after.generation
        assert broken.hello("1").hello.acked_generation == 1
        broken.welcomed(pb.Welcome(resume=True))
        (report,) = reports(broken)
        assert [reservation.key for reservation in report.reservations] == ["a"]
        assert [decision.pod for decision in report.decisions] == ["a"]
        assert not other.changes()

    def test_one_that_comes_later_is_told_no_decisions_that_others_have_heard(self) -> None:
        before = Occupancy(generation=1)
        mirror = started(before)
        first = welcomed(mirror)
        after = occupied(before, "a")
        changed(mirror, before, after, "a")
        first.changes()
        changed(mirror, after, occupied(after, "b"), "b")
        (report,) = reports(welcomed(mirror))
        assert [reservation.key for reservation in report.reservations] == ["a", "b"]
        assert [decision.pod for decision in report.decisions] == ["b"]

    def test_decisions_that_nobody_heard_wait_for_the_first_that_comes(self) -> None:
        before = Occupancy(generation=1)
        mirror = started(before)
        changed(mirror, before, occupied(before, "a"), "a")
        (report,) = reports(welcomed(mirror))
        assert [decision.pod for decision in report.decisions] == ["a"]


class TestEarlier:
    """A replica that starts from nothing is told the last decision on each container, so that it can say why."""

    @staticmethod
    def decided(mirror: Mirror, before: Occupancy, after: Occupancy, name: str, event: str = "create") -> None:
        record = pb.DecisionRecord(pod=name, container=f"c-{name}", event=event)
        mirror.reported(
            report_differences.report(
                report_differences.NodeState(before, registered=True),
                report_differences.NodeState(after, registered=True),
                [record],
            )
        )

    def mirror(self) -> tuple[Mirror, Occupancy]:
        """Decided on a and b, and all of it told."""
        before = Occupancy(generation=1)
        first = occupied(before, "a")
        two = occupied(first, "b")
        mirror = started(before)
        self.decided(mirror, before, first, "a")
        self.decided(mirror, first, two, "b")
        welcomed(mirror).changes()
        return mirror, two

    @staticmethod
    def earlier(mirror: Mirror) -> list[tuple[str, str]]:
        (report,) = reports(welcomed(mirror))
        return [(entry.container, entry.event) for entry in report.earlier]

    def test_what_was_told_before_is_told_as_such(self) -> None:
        mirror, _ = self.mirror()
        assert self.earlier(mirror) == [("c-a", "create"), ("c-b", "create")]

    def test_what_is_news_is_not_told_twice(self) -> None:
        mirror, occupancy = self.mirror()
        self.decided(mirror, occupancy, occupied(occupancy, "c"), "c")
        (report,) = reports(welcomed(mirror))
        assert [decision.container for decision in report.decisions] == ["c-c"]
        assert [entry.container for entry in report.earlier] == ["c-a", "c-b"]

    def test_the_last_one_on_a_container_counts(self) -> None:
        mirror, occupancy = self.mirror()
        self.decided(mirror, occupancy, occupancy, "a", "synchronize")
        welcomed(mirror).changes()
        assert self.earlier(mirror) == [("c-a", "synchronize"), ("c-b", "create")]

    def test_a_container_that_ended_is_forgotten(self) -> None:
        mirror, occupancy = self.mirror()
        changed(mirror, occupancy, occupancy.without_pod("a"))
        assert self.earlier(mirror) == [("c-b", "create")]

    def test_they_outlive_the_hook_that_decided(self) -> None:
        mirror, occupancy = self.mirror()
        mirror.started(local.Start(node="n1", session="s2", machine=pb.Machine(name="m")))
        mirror.reported(
            report_differences.report(None, report_differences.NodeState(occupancy.without_pod("a"), registered=True))
        )
        assert self.earlier(mirror) == [("c-b", "create")]

    def test_they_outlive_the_observer_that_told_them(self) -> None:
        """The hook tells them to the next one."""
        _, occupancy = self.mirror()
        whole = report_differences.report(None, report_differences.NodeState(occupancy, registered=True))
        whole.earlier.append(pb.DecisionRecord(pod="a", container="c-a", event="create"))
        fresh = Mirror()
        fresh.started(local.Start(node="n1", session="s1", machine=pb.Machine(name="m")))
        fresh.reported(whole)
        assert self.earlier(fresh) == [("c-a", "create")]

    def test_a_difference_tells_none(self) -> None:
        mirror, occupancy = self.mirror()
        backlog = welcomed(mirror)
        backlog.changes()
        self.decided(mirror, occupancy, occupied(occupancy, "c"), "c")
        (report,) = reports(backlog)
        assert not report.earlier


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), max_size=20),
    st.lists(st.sampled_from(["silent", "told", "lost", "broken"]), max_size=20),
)
def test_what_is_told_in_differences_adds_up_to_what_is(changes: list[tuple[bool, str]], fates: list[str]) -> None:
    """lost: the report goes out, and is lost with its stream; broken: the extender has it, and its answer is lost."""
    occupancy = Occupancy(generation=1)
    mirror = started(occupancy)
    backlog, reader = welcomed(mirror), Mirror()

    def told(*, received: bool = True, acknowledged: bool = True) -> None:
        for report in reports(backlog):
            if received:
                reader.reported(report)
            if acknowledged:
                backlog.acknowledged(pb.Ack(generation=report.generation))

    for index, (comes, name) in enumerate([(True, "a"), *changes]):
        after = occupied(occupancy, name) if comes else occupancy.without_pod(name)
        changed(mirror, occupancy, after)
        occupancy = after
        fate = fates[index] if index < len(fates) else "told"
        if fate != "silent":
            told(received=fate != "lost", acknowledged=fate == "told")
        if fate in ("lost", "broken"):
            acked = backlog.hello("1").hello.acked_generation
            backlog.welcomed(pb.Welcome(resume=acked > 0 and acked == reader.occupancy.generation))
    told()
    assert reader.occupancy.reservations == occupancy.reservations
    assert reader.occupancy.allocations == occupancy.allocations


MACHINE = machines.SMALL
amounts = st.integers(0, 1 << 40)
nodes = st.sets(st.sampled_from([*MACHINE.cpu_nodes]), min_size=1).map(NumaSet.of)
cpus = st.sets(st.sampled_from([*MACHINE.cpus]), max_size=6).map(CpuSet.of)
keys = st.sampled_from("abcde")
reservations = st.builds(
    Reservation,
    key=keys,
    pod=keys,
    group=st.sampled_from(["", "ns/web"]),
    numa_nodes=nodes,
    demand=st.builds(Demand, amounts, amounts, st.none() | amounts, st.dictionaries(st.just(2 << 20), amounts)),
    pool=st.sampled_from(Pool),
    alone=st.booleans(),
    size=st.integers(0, 9),
    workload=st.sampled_from(["", "ns/Deployment/web"]),
)
allocations = st.builds(
    Allocation,
    container=keys,
    name=st.just("main"),
    pod=keys,
    reservation=keys,
    cpus=cpus,
    mems=nodes,
    exclusive=cpus,
    externally_managed=st.booleans(),
)
lives = st.builds(
    Live,
    st.dictionaries(st.sampled_from([0, 1]), amounts),
    st.dictionaries(st.tuples(st.sampled_from([0, 1]), st.just(2 << 20)), amounts),
    st.dictionaries(st.sampled_from([0, 1]), amounts),
    st.dictionaries(st.sampled_from([0, 1]), st.floats(0, 1)),
)
changes = st.lists(
    st.tuples(
        st.dictionaries(keys, st.none() | reservations, max_size=2),
        st.dictionaries(keys, st.none() | allocations, max_size=2),
        lives,
    ),
    max_size=6,
)
OPERATED = st.builds(
    Occupancy,
    reserved=cpus,
    rules=st.builds(Rules, st.booleans(), st.integers(0, 9), st.booleans()),
    generation=st.just(1),
)

Message = TypeVar("Message", pb.Report, pb.Machine)


def sent(message: Message) -> Message:
    return type(message).FromString(message.SerializeToString())


def history(first: Occupancy, steps) -> Iterator[Occupancy]:
    """An occupancy as it becomes, change by change."""
    yield first
    for reservations, allocations, live in steps:
        named = {key: reservation and replace(reservation, key=key) for key, reservation in reservations.items()}
        held = {key: allocation and replace(allocation, container=key) for key, allocation in allocations.items()}
        first = first.changed(named, held, checked=False).with_live(first.live.after(live))
        yield first


@given(OPERATED, changes)
def test_all_that_the_hook_decides_by_is_what_the_observer_and_the_extender_hold(first: Occupancy, steps) -> None:
    """Field by field, those too that no report brings: each side plans, moves and scores by its own."""
    received = sent(convert.machine_to(MACHINE, first.reserved, first.rules))
    mirror = Mirror()
    mirror.started(local.Start(node="n1", session="s1", machine=received))
    machine, empty = incoming.machine(received)
    view = NodeView("n1", "s1", "1", machine, empty)
    states = list(history(first, steps))
    reports = [report_differences.report(None, report_differences.NodeState(first, registered=True))]
    reports += [
        report_differences.report(
            report_differences.NodeState(before, registered=True),
            report_differences.NodeState(after, registered=True),
            (),
        )
        for before, after in pairwise(states)
    ]
    for report, now in zip(map(sent, reports), states, strict=True):
        mirror.reported(report)
        view = view.applied(incoming.report(report, machine))
        assert isinstance(view, NodeView)
        assert mirror.occupancy == now
        assert view.reported.at_generation(view.generation) == now
        assert mirror.occupancy.directory.exclusive == view.reported.directory.exclusive == now.directory.exclusive


def test_another_hook_brings_its_operators_settings() -> None:
    mirror = started(Occupancy(generation=1))
    reserved = CpuSet.parse("0-1")
    mirror.started(
        local.Start(node="n1", session="s2", machine=convert.machine_to(MACHINE, reserved, Rules(everyone=True)))
    )
    mirror.reported(
        report_differences.report(None, report_differences.NodeState(Occupancy(generation=1), registered=True))
    )
    assert (mirror.occupancy.reserved, mirror.occupancy.rules) == (reserved, Rules(everyone=True))
