"""What one replica has received makes no difference for another, and one that starts from nothing is told why."""

from enforcer.local import report_differences
from enforcer.report.mirror import Mirror
from numakin.placement.state.occupancy import Occupancy
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb
from tests.enforcer.report.telling import changed, occupied, reports, started, welcomed


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
                report_differences.ReportedNode(before, registered=True),
                report_differences.ReportedNode(after, registered=True),
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
            report_differences.report(
                None, report_differences.ReportedNode(occupancy.without_pod("a"), registered=True)
            )
        )
        assert self.earlier(mirror) == [("c-b", "create")]

    def test_they_outlive_the_observer_that_told_them(self) -> None:
        """The hook tells them to the next one."""
        _, occupancy = self.mirror()
        whole = report_differences.report(None, report_differences.ReportedNode(occupancy, registered=True))
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
