"""The extender predicts by the figures that the hook decides by."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from enforcer.hook.agent import Agent
from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.outbox import Outbox
from enforcer.report.backlog import ReportBacklog
from enforcer.report.mirror import Mirror
from extender.reports import incoming
from extender.state.node_view import NodeView
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.live_usage import NOTHING, Live
from numakin.wire import convert
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.hardware.figures import GIB, HUGE, KNOWN, PAGE, figures
from tests.enforcer.hook.world import container, member


class Both:
    """A node's hook and, at the end of the report stream, the extender's view of it."""

    def __init__(self) -> None:
        self.now = NOTHING
        node = NodeFacts(HUGE, CpuSet(), lambda _path: None, lambda: dict(self.now.free_memory), lambda: self.now)
        self.agent = Agent(node, Nominations())
        self.outbox = Outbox(self.agent)
        self.mirror = Mirror()
        self.mirror.started(local.Start(node="n1", session="s1", machine=convert.machine_to(HUGE)))
        self.backlog = ReportBacklog(self.mirror)
        self.view = NodeView("n1", "s1", "1", HUGE)
        self._deliver(self.outbox.whole())

    def read(self, now: Live) -> None:
        self.now = now
        self.agent.refresh()
        self._deliver(self.outbox.changes())

    def create(self, name: str) -> None:
        self.agent.create_container(member(name), container(name))
        self._deliver(self.outbox.changes())

    @property
    def reports(self) -> int:
        return self._reports

    _reports = 0

    def _deliver(self, messages: list[local.FromHook]) -> None:
        for message in messages:
            if message.HasField("report"):
                self.mirror.reported(pb.Report.FromString(message.report.SerializeToString()))
        for message in self.backlog.changes():
            if message.HasField("report"):
                self._reports += 1
                view = self.view.applied(incoming.report(message.report, HUGE))
                assert isinstance(view, NodeView)
                self.view = view


@given(st.lists(st.one_of(figures, st.sampled_from("abc")), max_size=12))
def test_the_extender_predicts_by_the_figures_that_the_hook_decides_by(events: list[Live | str]) -> None:
    both = Both()
    for event in events:
        if isinstance(event, Live):
            both.read(event)
        else:
            both.create(event)
        hook, extender = both.agent.occupancy, both.view.reported
        assert extender.live == hook.live
        assert (extender.reservations, extender.allocations) == (hook.reservations, hook.allocations)


def test_a_quiet_node_tells_nothing_and_no_reading_makes_an_offer_stale() -> None:
    both = Both()
    both.read(KNOWN)
    generation, reports = both.view.generation, both.reports
    for step in range(100):
        both.read(replace(KNOWN, free_memory={0: 8 * GIB - step * (PAGE + 1)}, used_cpu={0: 2000 + step % 7 * 60}))
    assert (both.view.generation, both.reports) == (generation, reports)
    both.read(Live(used_cpu={0: 4000}))
    assert (both.view.generation, both.reports) == (generation, reports + 1)


def test_a_new_pod_avoids_the_numa_node_that_waits_for_memory() -> None:
    both = Both()
    both.read(Live({0: 32 * GIB, 1: 32 * GIB}, stalled={0: 0.4, 1: 0.0}))
    both.create("a")
    assert str(both.agent.occupancy.reservations["uid-a"].numa_nodes) == "1"


def test_of_equals_the_one_that_is_really_less_busy_is_taken() -> None:
    both = Both()
    both.read(Live(used_cpu={0: 7000, 1: 500}))
    both.create("a")
    assert str(both.agent.occupancy.reservations["uid-a"].numa_nodes) == "1"


def test_a_pod_that_may_use_the_most_that_can_be_asked_for_is_reported_as_any() -> None:
    """Any tenant may write such limits; three of them come to more than a report can say."""
    both = Both()
    for name in ("a", "b", "c"):
        made = container(name, memory=2**63 - 1)
        made.name = name
        both.agent.create_container(member("web"), made)
    both.read(NOTHING)
    assert both.view.reported.reservations == both.agent.occupancy.reservations
