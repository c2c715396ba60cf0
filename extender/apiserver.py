"""Everything between this program and the API server: what is watched there, told there and published there.

Nothing here is needed to answer kube-scheduler: while the API server can't be reached the last view serves on, and
its age is shown.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Protocol

import structlog

from extender.cluster.pods import NodeChanges, PodChanges, PodRow
from extender.cluster.readout import Gauge
from extender.cluster.view import DecisionRow
from extender.kube import stream
from extender.kube.affinitygroup import API_VERSION, object_name
from extender.kube.api import Api, ApiError, Unreachable
from extender.kube.config import ACCOUNT
from extender.kube.events import About, Event, Events
from extender.kube.grouprows import GroupChanges, GroupRow, affinity_groups
from extender.kube.lease import DEFAULT_TERMS, Election, Terms
from extender.kube.publish import Desired, Publisher, Unwanted
from extender.kube.tokens import BadToken, node_of
from extender.kube.watch import Pace, Watcher
from extender.reports.server import Denied, Unproven
from extender.waking import Waker
from placement.optin import opted_in, parse

LEASE = "numakin-extender"

GROUPS_RETRY_S = 300.0
"""The longest wait before the groups are listed again: a cluster may be without their definition for good."""

STOP_SECONDS = 2.0
"""For each part, at shutdown."""

PLACED, NOT_PLACED, BAD_ANNOTATION = "NumaPlaced", "NumaNotPlaced", "NumaAnnotationIgnored"
BAD_SPEC = "NumaSpecIgnored"
"""The reasons of our Events."""

_log = structlog.get_logger("apiserver")


class Part(Protocol):
    """What has a thread of its own."""

    def start(self) -> None: ...

    def stop(self, timeout_s: float) -> None: ...


class ApiServer:
    """pods, nodes, groups: where changes go. published: what should be there for others. Every part has its own
    thread.
    """

    def __init__(
        self,
        api: Api,
        pods: Callable[[PodChanges], None],
        nodes: Callable[[NodeChanges], None],
        groups: Callable[[GroupChanges], None],
        published: Callable[[], Iterable[Desired | Unwanted]],
        *,
        namespace: str,
        terms: Terms = DEFAULT_TERMS,
    ) -> None:
        self._api = api
        self._pods, self._groups = pods, groups
        self._told: set[str] = set()
        self._told_groups: dict[str, tuple[str, ...]] = {}
        me = f"{socket.gethostname()}-{os.getpid()}"
        self._election = Election(api, namespace, LEASE, me, terms=terms)
        self._events = Events(api, me, lambda: self._election.leading)
        self._pod_watch = Watcher(api, stream.pods(), self._pods_changed)
        self._node_watch = Watcher(api, stream.nodes(), nodes)
        self._group_watch = Watcher(api, affinity_groups(), self._groups_changed, Pace(longest_s=GROUPS_RETRY_S))
        publisher = Publisher(api, published, lambda: self._election.leading)
        self._waker = Waker(api)
        watches = (self._pod_watch, self._node_watch, self._group_watch)
        self._parts: tuple[Part, ...] = (self._election, self._events, self._waker, publisher, *watches)

    def start(self) -> None:
        for part in self._parts:
            part.start()

    def stop(self) -> None:
        for part in reversed(self._parts):
            part.stop(STOP_SECONDS)

    def unseen(self) -> list[str]:
        """What was not listed once yet."""
        synced = {
            "pods": self._pod_watch.synced,
            "nodes": self._node_watch.synced,
            "affinity groups": self._group_watch.synced,
        }
        return [name for name, one in synced.items() if not one.is_set()]

    def decided(self, row: DecisionRow) -> None:
        """Tells the pod's readers where a container was placed, or why it was not."""
        placed = f"on NUMA node {row.numa_nodes}" if row.cpus else "left open"
        text = f"container {row.container} {placed}: {'; '.join(row.sentences)}"
        about = About(row.namespace, row.name, row.pod)
        self._events.emit(Event(about, PLACED if row.cpus else NOT_PLACED, text, warning=not row.cpus))

    def wake(self, pods: Iterable[PodRow]) -> None:
        """Makes kube-scheduler look at these refused pods again."""
        for pod in pods:
            self._waker.wake(pod)

    def gauges(self) -> Iterator[Gauge]:
        ages = {"pods": self._pod_watch.age_s, "nodes": self._node_watch.age_s}
        yield "numakin_extender_watch_age_seconds", "How old the view of the API server may be.", "resource", ages
        synced = {"pods": self._pod_watch.synced.is_set(), "nodes": self._node_watch.synced.is_set()}
        yield "numakin_extender_watch_synced", "Whether all was listed once.", "resource", synced
        leading = {"": float(self._election.leading)}
        yield "numakin_extender_leading", "Whether this replica is the one that writes.", "", leading

    def node_of(self, token: str, account: str) -> str:
        """The node that an enforcer's token speaks for. account: NAMESPACE:NAME."""
        try:
            return node_of(self._api, token, account)
        except BadToken as bad:
            raise Denied(str(bad)) from bad
        except (ApiError, Unreachable) as bad:
            raise Unproven(f"the API server can't check the token: {bad}") from bad

    def _pods_changed(self, changes: PodChanges) -> None:
        self._pods(changes)
        for row in changes.rows:
            if opted_in(row.annotations) and row.uid not in self._told and not row.ended:
                self._told.add(row.uid)
                self._tell_problems(row)
        self._told.difference_update(changes.gone)
        if changes.whole:
            self._told.intersection_update(row.uid for row in changes.rows)

    def _tell_problems(self, row: PodRow) -> None:
        about = About(row.namespace, row.name, row.uid)
        found = (parse(row.namespace, row.annotations, one.name)[1] for one in row.containers)
        for problem in dict.fromkeys(chain.from_iterable(found)):
            self._events.emit(Event(about, BAD_ANNOTATION, str(problem), warning=True))

    def _groups_changed(self, changes: GroupChanges) -> None:
        self._groups(changes)
        for row in changes.rows:
            if row.problems != self._told_groups.get(row.key, ()):
                self._tell_ignored(row)
        rows = {row.key: row.problems for row in changes.rows if row.problems}
        before = {} if changes.whole else self._told_groups
        mended = {row.key for row in changes.rows} | {*changes.gone}
        self._told_groups = {key: told for key, told in before.items() if key not in mended} | rows

    def _tell_ignored(self, row: GroupRow) -> None:
        about = About(row.namespace, object_name(row.name), row.uid, "AffinityGroup", API_VERSION)
        for problem in row.problems:
            _log.warning("ignored in a group's object", group=row.group, why=problem)
            self._events.emit(Event(about, BAD_SPEC, problem, warning=True))


def own_namespace() -> str:
    """The pod's, as its service account's volume tells it; empty outside of a cluster."""
    file = ACCOUNT / "namespace"
    return file.read_text().strip() if file.exists() else ""
