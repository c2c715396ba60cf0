"""The thread that learns: it owns the cluster graph, takes what enforcers and the API server report, and hands out what
is known as one immutable value.

Nothing waits for it. Traffic that comes faster than it can be taken in is dropped and counted; what is known is made
anew no oftener than its making is worth, so that kube-scheduler's questions have the processor for themselves.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from threading import Event

from extender.state.group_spec import Specs
from extender.state.pods import Changes, PodRow, ServiceRow
from extender.traffic import learned
from extender.traffic.known import ClusterTraffic, TrafficLearning
from extender.traffic.policies import PolicyRow
from numakin.placement.namespaces import Namespaces
from numakin.placement.optin.parsing import opted_in
from numakin.placement.traffic.graph import Flow
from numakin.process.brief_wait import BriefWait
from numakin.process.threads import IDLE, Backoff, Threaded, Threads

EVERY_S = 2.0
"""Seconds between two updates of what is known."""

SHARE = 0.05
"""Of its time that the thread may spend on making what is known."""

SHARE_OF_NEW = 0.25
"""Of its time that it may spend on it while workloads come of which something may be expected (`Priors`): EVERY_S is
too late for the pods of a new application, which are scheduled within milliseconds of their creation.
"""

MOST_FLOWS = 500_000
"""Flows that wait to be taken in: some 150 MB."""

BACKOFF = Backoff(first_s=0.01, longest_s=1.0)
"""What is learned comes from all nodes: one that reports nonsense must not hold up the rest."""


QueuedStep = Callable[[], object]


class StepQueue:
    """put() may be called from any thread, the others from the one thread alone."""

    def __init__(self) -> None:
        self._steps: deque[QueuedStep] = deque()
        self._called = Event()

    def put(self, step: QueuedStep, *, soon: bool = True) -> None:
        """soon: the thread is woken for it; else it is done with the next that is, or when it looks by itself."""
        self._steps.append(step)
        if soon:
            self._called.set()

    def wait(self, longest_s: float) -> int:
        """How many are there, once one of them is to be done soon, or after that time."""
        self._called.wait(longest_s)
        return len(self._steps)

    def take(self) -> QueuedStep:
        """IndexError where there is none."""
        step = self._steps.popleft()
        if not self._steps:
            self._called.clear()
            if self._steps:  # put meanwhile, and its call cleared
                self._called.set()
        return step


class Learner(Threaded):
    """publish: called on its thread with what is known by now. application_label: as for `PodIndex`. All else may be
    called from any thread. What was received before `stop` is part of what is known afterwards.
    """

    def __init__(
        self,
        publish: Callable[[ClusterTraffic], None],
        *,
        threads: Threads,
        application_label: str = "",
    ) -> None:
        self.dropped_flows = 0
        self._learned_at: float | None = None
        self._publish = publish
        self._learning = TrafficLearning(application_label=application_label)
        self._steps = StepQueue()
        self._lock = threading.Lock()
        self._flows = 0
        self._made = BriefWait()
        self._workloads: Collection[str] = ()
        self._due, self._earliest, self._took_s, self._news = 0.0, 0.0, 0.0, False
        self._thread = threads.thread("learning", self._round, wake=self._wake, last=self._finish, backoff=BACKOFF)

    @property
    def age_s(self) -> float:
        """Since traffic that is taken in was received; NaN before the first."""
        return math.nan if self._learned_at is None else time.monotonic() - self._learned_at

    def _wake(self) -> None:
        self._steps.put(lambda: None)

    def traffic(self, node: str, flows: tuple[Flow, ...]) -> None:
        """What a node's enforcer reports."""
        with self._lock:
            if self._flows + len(flows) > MOST_FLOWS:
                self.dropped_flows += len(flows)
                return
            self._flows += len(flows)
        self._steps.put(partial(self._receive, node, flows, time.monotonic()))

    def uses(self, node: str, milli: Mapping[str, int]) -> None:
        """What pods of each workload use on a node, as its enforcer reports it."""
        now = time.monotonic()
        self._steps.put(lambda: self._learning.used(node, milli, now))

    def pods(self, changes: Changes[PodRow]) -> None:
        """What the API server reports. Only members that wait for a node are worth waking the thread for: one that is
        bound is placed already, and in a burst each pod is reported several times.
        """
        now = time.monotonic()
        waiting = any(not row.node and opted_in(row.annotations) for row in changes.rows)
        self._steps.put(lambda: self._learning.apply(changes, now), soon=waiting)

    def set_namespaces(self, namespaces: Namespaces) -> None:
        """Which namespaces' pods may be kin from now on."""
        self._steps.put(lambda: self._learning.set_namespaces(namespaces))

    def asked(self, row: PodRow, _longest_s: float) -> None:
        """What kube-scheduler sends; the call does not wait."""
        now = time.monotonic()
        self._steps.put(lambda: self._learning.asked(row, now))

    def services(self, changes: Changes[ServiceRow]) -> None:
        """What the API server reports."""
        self._steps.put(lambda: self._learning.priors.services(changes))

    def policies(self, changes: Changes[PolicyRow]) -> None:
        """What the API server reports."""
        self._steps.put(lambda: self._learning.priors.policies(changes))

    def set_group_specs(self, specs: Specs) -> None:
        """What operators ask of groups."""
        self._steps.put(lambda: self._learning.priors.set_group_specs(specs))

    def awaited(self, row: PodRow, longest_s: float) -> None:
        """Returns once what is expected of a pod's workload is known, mostly after some milliseconds; at once where
        making it is seen to take longer than it may.
        """
        if self._made_within(longest_s):
            self._made.until(lambda: row.workload in self._workloads, longest_s)

    def _made_within(self, longest_s: float) -> bool:
        """Whether what is known can be made anew by then."""
        return self._earliest - time.monotonic() + self._took_s <= longest_s

    def restored(self, group: str, text: str) -> None:
        """What an extender before this one wrote down of a group."""
        now = time.monotonic()
        self._steps.put(lambda: self._learning.restored(group, learned.read(text, group), now))

    def _receive(self, node: str, flows: tuple[Flow, ...], now: float) -> None:
        with self._lock:
            self._flows -= len(flows)
        self._learning.receive(node, flows, now)
        self._learned_at = now

    def _round(self) -> object:
        """The steps that have come, and making what is known where that is due. Only the latter makes up for a round
        that failed.

        A step that returns True changes what is expected of workloads.
        """
        for _ in range(self._steps.wait(max(0.0, self._due - time.monotonic()))):
            self._news = True
            if self._steps.take()() is True:
                self._due = min(self._due, self._earliest)
        began = time.monotonic()
        if began < self._due:
            return IDLE
        news, self._news = self._news, False
        try:
            if news:
                self._make()
        finally:
            ended = time.monotonic()
            self._took_s = ended - began
            self._earliest = ended + self._took_s / SHARE_OF_NEW
            self._due = ended + max(EVERY_S, self._took_s / SHARE)
        return None if news else IDLE

    def _finish(self) -> None:
        try:
            for _ in range(self._steps.wait(0.0)):
                self._steps.take()()
        finally:
            self._make()

    def _make(self) -> None:
        known = self._learning.known(time.monotonic())
        self._publish(known)
        self._workloads = known.replicas
        self._made.news()
