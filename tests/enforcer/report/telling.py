"""A hook that reports to an observer, and an extender that receives from it, without a stream between."""

from enforcer.local import report_differences
from enforcer.report.backlog import ReportBacklog
from enforcer.report.mirror import Mirror
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb


def occupied(occupancy: Occupancy, name: str) -> Occupancy:
    reservation = Reservation(name, name, "ns/web", NumaSet.parse("0"), Demand(1000, 1 << 20))
    return occupancy.with_reservation(reservation).with_allocation(
        Allocation(f"c-{name}", "app", name, name, CpuSet.parse("0-3"))
    )


def started(occupancy: Occupancy, session: str = "s1") -> Mirror:
    mirror = Mirror()
    mirror.started(local.Start(node="n1", session=session, machine=pb.Machine(name="m")))
    mirror.reported(report_differences.report(None, report_differences.ReportedNode(occupancy, registered=True)))
    return mirror


def changed(mirror: Mirror, before: Occupancy, after: Occupancy, *pods: str) -> None:
    decisions = [pb.DecisionRecord(pod=pod) for pod in pods]
    mirror.reported(
        report_differences.report(
            report_differences.ReportedNode(before, registered=True),
            report_differences.ReportedNode(after, registered=True),
            decisions,
        )
    )


def welcomed(mirror: Mirror) -> ReportBacklog:
    backlog = ReportBacklog(mirror)
    backlog.welcomed(pb.Welcome())
    return backlog


def reports(backlog: ReportBacklog) -> list[pb.Report]:
    return [change.report for change in backlog.changes() if change.HasField("report")]
