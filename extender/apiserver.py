"""Everything between this program and the API server: what is watched, reported and published there.

Nothing here is needed to answer kube-scheduler: while the API server can't be reached the last view serves on, and
its age is shown.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence

from extender.kube import stream
from extender.kube.api import Api, ApiError, Unreachable
from extender.kube.config import ACCOUNT
from extender.kube.events import About, Events, KubeEvent
from extender.kube.evictions import Evictions
from extender.kube.lease import DEFAULT_TERMS, Election, LeaseDurations
from extender.kube.namespace_settings import NamespaceRow
from extender.kube.namespace_settings import namespaces as namespaces_resource
from extender.kube.objects.affinitygroup import API_VERSION, object_name
from extender.kube.objects.grouprows import GroupRow, affinity_groups
from extender.kube.objects.told_kinds import KINDS
from extender.kube.optional_kinds import OptionalKinds
from extender.kube.policy_rows import policies as network_policies
from extender.kube.publish import EVERY_S, Desired, Publisher, Unwanted
from extender.kube.regroup_link import RegroupLink
from extender.kube.tokens import BadToken, node_of
from extender.kube.waker import Waker
from extender.kube.watch import ListWatch, Pace
from extender.reports.streams import Denied, Unproven
from extender.state.node_report import DecisionRow
from extender.state.pods import Changes, NodeRow, PodRow, ServiceRow
from extender.state.told_groups import ToldRow
from extender.traffic.policies import PolicyRow
from extender.views.readout import Gauge
from numakin.placement.optin.parsing import GROUP_KEY, names_us, opted_in, problems
from numakin.process.log import Log
from numakin.process.threads import Backoff, Threaded, Threads

LEASE = "numakin-extender"

GROUPS_RETRY_S = 300.0
"""The longest wait before the groups are listed again: a cluster may be without their definition for good."""

STOP_SECONDS = 2.0
"""For each part, at shutdown."""

PLACED, NOT_PLACED, BAD_ANNOTATION = "NumaPlaced", "NumaNotPlaced", "NumaAnnotationIgnored"
BAD_SPEC = "NumaSpecIgnored"
"""The reasons of our Events."""

NOT_OPTED_IN = f"the pod has no annotation {GROUP_KEY}: without it none of the others counts"

_log = Log("apiserver")


class ApiServerLink:
    """pods, nodes, groups, namespaces, services, policies: where changes go; without one of the last two, Services or
    NetworkPolicies are not watched, and Services not looked for in pods. published: what should be there for others,
    looked for every publish_s seconds, and later while busy. namespace: where the Lease is. near: the labels by which
    nodes are near each other. told: where goes what other controllers' objects say of groups. Every part has its own
    thread.
    """

    def __init__(
        self,
        api: Api,
        pods: Callable[[Changes[PodRow]], None],
        nodes: Callable[[Changes[NodeRow]], None],
        groups: Callable[[Changes[GroupRow]], None],
        published: Callable[[], Iterable[Desired | Unwanted]],
        *,
        namespaces: Callable[[Changes[NamespaceRow]], None],
        services: Callable[[Changes[ServiceRow]], None] | None,
        policies: Callable[[Changes[PolicyRow]], None] | None = None,
        namespace: str,
        terms: LeaseDurations = DEFAULT_TERMS,
        publish_s: float = EVERY_S,
        busy: Callable[[], bool] = lambda: False,
        near: Sequence[str] = (),
        told: Callable[[str, Changes[ToldRow]], None] | None = None,
        threads: Threads,
    ) -> None:
        self._api = api
        self._pods, self._groups, self._namespaces = pods, groups, namespaces
        self._checked: set[str] = set()
        self._reported_groups: dict[str, tuple[str, ...]] = {}
        self._me = me = f"{socket.gethostname()}-{os.getpid()}"
        self._election = Election(api, namespace, LEASE, me, terms=terms, threads=threads)
        self._events = Events(
            api, me, lambda: self._election.leading, lambda: self._election.others_lead, threads=threads
        )
        self._pod_watch = ListWatch(
            api, stream.pods(service_names=services is not None), self._pods_changed, threads=threads
        )
        self._node_watch = ListWatch(api, stream.nodes(near), nodes, threads=threads)
        self._namespace_watch = ListWatch(api, namespaces_resource(), self._namespaces_changed, threads=threads)
        pace = Pace(Backoff(longest_s=GROUPS_RETRY_S))
        self._group_watch = ListWatch(api, affinity_groups(), self._groups_changed, pace, threads=threads)
        publisher = Publisher(
            api, published, lambda: self._election.leading_since, busy=busy, every_s=publish_s, threads=threads
        )
        self._waker = Waker(api, threads=threads)
        watches: list[Threaded] = [self._namespace_watch, self._pod_watch, self._node_watch, self._group_watch]
        if services is not None:
            watches.append(ListWatch(api, stream.services(), services, pace, threads=threads))
        if policies is not None:
            watches.append(ListWatch(api, network_policies(), policies, pace, threads=threads))
        if told is not None:
            watches.append(OptionalKinds(api, KINDS, told, threads=threads))
        self._parts: tuple[Threaded, ...] = (self._election, self._events, self._waker, publisher, *watches)

    def start(self) -> None:
        for part in self._parts:
            part.start()

    def stop(self) -> None:
        for part in reversed(self._parts):
            part.stop(STOP_SECONDS)

    def unseen(self) -> list[str]:
        """The resources that were not listed once yet."""
        synced = {
            "namespaces": self._namespace_watch.synced,
            "pods": self._pod_watch.synced,
            "nodes": self._node_watch.synced,
            "affinity groups": self._group_watch.synced,
        }
        return [name for name, listed in synced.items() if not listed.is_set()]

    def decided(self, node: str, row: DecisionRow) -> None:
        """Reports by an Event where a container was placed, or why it was not, as the node's enforcer says."""
        placed = f"on NUMA node {row.numa_nodes}" if row.cpus else "left open"
        text = f"container {row.container} {placed}: {'; '.join(row.sentences)}"
        about = About(row.namespace, row.name, row.pod)
        # The Events of a container that restarts again and again differ by their figures alone.
        series = f"{row.event} {row.container} {placed}"
        self._events.emit(
            KubeEvent(about, PLACED if row.cpus else NOT_PLACED, text, warning=not row.cpus, series=series, node=node)
        )

    @property
    def regrouping(self) -> RegroupLink:
        """For what brings groups together again."""
        election, emit = self._election, self._events.emit
        return RegroupLink(self._api, Evictions(self._api), lambda: election.leading_since, emit, self._me)

    def wake(self, pods: Iterable[PodRow]) -> None:
        """Makes kube-scheduler try these refused pods again."""
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

    def _pods_changed(self, changes: Changes[PodRow]) -> None:
        self._pods(changes)
        for row in changes.rows:
            if row.uid not in self._checked and names_us(row.annotations) and not row.ended:
                self._checked.add(row.uid)
                self._report_problems(row)
        self._checked.difference_update(changes.gone)
        if changes.whole:
            self._checked.intersection_update(row.uid for row in changes.rows)

    def _report_problems(self, row: PodRow) -> None:
        about = About(row.namespace, row.name, row.uid)
        lines = problems(row.namespace, row.annotations, [container.name for container in row.containers]).lines
        for line in lines if opted_in(row.annotations) else (*lines, NOT_OPTED_IN):
            self._events.emit(KubeEvent(about, BAD_ANNOTATION, line, warning=True))

    def _namespaces_changed(self, changes: Changes[NamespaceRow]) -> None:
        self._namespaces(changes)
        for row in changes.rows:
            about = About(row.name, row.name, row.uid, "Namespace")
            for problem in row.problems:
                _log.warning("not taken of a namespace", namespace=row.name, why=problem)
                self._events.emit(KubeEvent(about, BAD_ANNOTATION, problem, warning=True))

    def _groups_changed(self, changes: Changes[GroupRow]) -> None:
        self._groups(changes)
        for row in changes.rows:
            if row.problems != self._reported_groups.get(row.key, ()):
                self._report_ignored(row)
        rows = {row.key: row.problems for row in changes.rows if row.problems}
        before = {} if changes.whole else self._reported_groups
        fixed = {row.key for row in changes.rows} | {*changes.gone}
        self._reported_groups = {key: known for key, known in before.items() if key not in fixed} | rows

    def _report_ignored(self, row: GroupRow) -> None:
        about = About(row.namespace, object_name(row.name), row.uid, "AffinityGroup", API_VERSION)
        for problem in row.problems:
            _log.warning("ignored in a group's object", group=row.group, why=problem)
            self._events.emit(KubeEvent(about, BAD_SPEC, problem, warning=True))


def own_namespace() -> str:
    """The pod's namespace, from its service account's volume; empty outside of a cluster."""
    file = ACCOUNT / "namespace"
    return file.read_text().strip() if file.exists() else ""
