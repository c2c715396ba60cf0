"""Each replica of the extender is told everything once, and then only what is new, however often its stream breaks."""

from enforcer.local import report_differences
from enforcer.report.backlog import ReportBacklog
from enforcer.report.mirror import Mirror
from numakin.placement.model.live_usage import Live
from numakin.placement.state.occupancy import Occupancy, fingerprint
from numakin.wire import convert
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb
from tests.enforcer.report.telling import changed, occupied, reports, started, welcomed


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
        report_differences.report(None, report_differences.ReportedNode(Occupancy(generation=1), registered=True))
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
            report_differences.ReportedNode(before, registered=True),
            report_differences.ReportedNode(after, registered=False),
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
            None, report_differences.ReportedNode(Occupancy(live=Live(used_cpu={0: 1}), generation=1), registered=True)
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
        report_differences.report(None, report_differences.ReportedNode(Occupancy(generation=1), registered=True))
    )
    machine, report = backlog.changes()
    assert (machine.machine.name, report.report.base_generation) == ("other", 0)
