"""Whose address it is, and whose pod: from addresses to pods, from pods to workloads.

Traffic is reported some seconds after it flowed, so a pod that ends keeps its address for a while, unless another gets
it, and its workload for longer, so that what it exchanged goes on counting for the workload. Pods that have not opted
in are known by their address alone. One owner; times are seconds of any clock that never runs backwards.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from extender.state.pods import Changes, PodRow
from numakin.placement.optin.parsing import opted_in, parse

LINGER_S = 60.0
"""Seconds for which an address goes on standing for a pod that has ended: several of the enforcers' windows."""

MOST_PAST = 20_000
"""Ended pods that still stand for their workload; the oldest go first."""

_IPV4 = re.compile(
    r"((?:[1-9]?\d|1\d\d|2[0-4]\d|25[0-5])(?:\.(?:[1-9]?\d|1\d\d|2[0-4]\d|25[0-5])){3})(?::(\d{1,5}))?", re.ASCII
)
"""By far the most; the rest, and what only resembles an address, is read at leisure."""

OUTSIDE = ""
"""In place of the uid of a pod that has not opted in."""


MOST_ASKED = 20_000
"""Pods that only kube-scheduler has named, so that their end is never reported; over that the oldest have ended."""


class RemoteEnd(NamedTuple):
    """A remote end as flows name it. port: the server's; 0 where none is reported."""

    ip: str
    port: int = 0


class IndexedPod(NamedTuple):
    """What is kept of an opted-in pod. group: empty where it is to be learned. node and ips: empty while not known; one
    of each address family that the pod has. application: by its label; empty without.
    """

    workload: str
    group: str
    node: str
    ips: tuple[str, ...]
    host_network: bool
    application: str = ""


def address(endpoint: str) -> RemoteEnd | None:
    """None when the endpoint is a pod's uid."""
    return _address(endpoint) if "." in endpoint or ":" in endpoint else None


class PodIndex:
    """The cluster's pods as the API server and kube-scheduler report them. application_label: whose value is the
    application that a pod is of; empty: no pod says.
    """

    def __init__(self, application_label: str = "") -> None:
        self._application_label = application_label
        self._live: dict[str, IndexedPod] = {}
        self._others: dict[str, tuple[str, ...]] = {}
        self._asked: dict[str, None] = {}
        self._past: dict[str, IndexedPod] = {}
        self._ended: dict[str, float] = {}
        self._ips: dict[str, str] = {}
        self._ports: dict[RemoteEnd, str] = {}
        self._replicas: Counter[str] = Counter()

    def apply(self, changes: Changes[PodRow], now: float) -> list[str]:
        """The addresses that stand for another pod than before."""
        if changes.whole:
            self._end((self._live.keys() | self._others.keys()) - {row.uid for row in changes.rows}, now)
        self._end(changes.gone, now)
        return [ip for row in changes.rows for ip in self._seen(row, now)]

    def asked(self, row: PodRow, now: float) -> None:
        """A pod that kube-scheduler asks about: all that is known of it where no API server is watched."""
        if row.uid in self._live or row.uid in self._past or not opted_in(row.annotations):
            return
        self._enter(row)
        self._asked[row.uid] = None
        if len(self._asked) > MOST_ASKED:
            self._end((next(iter(self._asked)),), now)

    def workload(self, uid: str) -> str | None:
        """Of a pod that is here or was here lately."""
        pod = self._live.get(uid) or self._past.get(uid)
        return pod.workload if pod else None

    def node(self, uid: str) -> str:
        """Where the pod is bound; empty while not known."""
        pod = self._live.get(uid)
        return pod.node if pod else ""

    def owners(self) -> dict[str, str]:
        """Workload by uid, of pods that are here or were here lately."""
        return {uid: pod.workload for pods in (self._past, self._live) for uid, pod in pods.items()}

    def replicas(self) -> dict[str, int]:
        """Pods that are here, by workload."""
        return dict(self._replicas)

    def groups(self) -> dict[str, str]:
        """By workload that is here the group that its pods say; empty where it is to be learned."""
        return {pod.workload: pod.group for pod in self._live.values()}

    def applications(self) -> dict[str, str]:
        """By workload that is here or was here lately the application that its pods say; empty where none says any."""
        found: dict[str, str] = {}
        if self._application_label:
            for pod in (*self._past.values(), *self._live.values()):
                found[pod.workload] = pod.application or found.get(pod.workload, "")
        return found

    def by_ip(self, ip: str) -> str | None:
        """The pod whose own address it is: a uid, or OUTSIDE; None when no pod has it: a Service, a node, the world."""
        return self._ips.get(ip)

    def server(self, at: RemoteEnd) -> str | None:
        """The pod behind an address: its own, or on a node's the hostNetwork pod that was seen to serve that port."""
        return self._ips.get(at.ip, self._ports.get(at))

    def serves(self, uid: str, port: int) -> list[str]:
        """A pod was seen to serve a port; its addresses where that is news, and on its node's network."""
        pod = self._live.get(uid)
        if pod is None or not pod.host_network or not port:
            return []
        news = [ip for ip in pod.ips if self._ports.get(RemoteEnd(ip, port)) != uid]
        self._ports.update((RemoteEnd(ip, port), uid) for ip in news)
        return news

    def tidy(self, now: float, lasting: float) -> None:
        """Forgets addresses of pods that ended LINGER_S ago, and pods that ended `lasting` seconds ago."""
        for uid, at in list(self._ended.items()):
            if now - at < LINGER_S:
                break
            self._clear_address(uid)
            if now - at < lasting and len(self._ended) <= MOST_PAST:
                continue
            del self._ended[uid]
            self._past.pop(uid, None)

    def _seen(self, row: PodRow, now: float) -> Sequence[str]:
        if row.ended:
            self._end((row.uid,), now)
            return ()
        ips = _addresses(row)
        if not opted_in(row.annotations):
            self._end_live(row.uid, now)
            self._forget(OUTSIDE, [ip for ip in self._others.get(row.uid, ()) if ip not in ips])
            self._others[row.uid] = ips
            uid = OUTSIDE
        else:
            self._others.pop(row.uid, None)
            self._enter(row)
            self._asked.pop(row.uid, None)
            uid = row.uid
        news = [] if row.host_network else [ip for ip in ips if self._ips.get(ip) != uid]
        self._ips.update(dict.fromkeys(news, uid))
        return news

    def _enter(self, row: PodRow) -> None:
        before = self._live.get(row.uid)
        opt_in = parse(row.namespace, row.annotations)
        group = opt_in.group if opt_in else ""
        application = row.labels.get(self._application_label, "")
        pod = IndexedPod(row.workload, group, row.node, _addresses(row), row.host_network, application)
        self._live[row.uid] = pod
        self._ended.pop(row.uid, None)
        former = self._past.pop(row.uid, None) or before
        if former is not None:
            self._forget(row.uid, [ip for ip in former.ips if ip not in pod.ips])
        if before is not None:
            self._leave(before.workload)
        self._replicas[pod.workload] += 1

    def _leave(self, workload: str) -> None:
        self._replicas[workload] -= 1
        if not self._replicas[workload]:
            del self._replicas[workload]

    def _end(self, uids: Iterable[str], now: float) -> None:
        for uid in uids:
            self._forget(OUTSIDE, self._others.pop(uid, ()))
            self._end_live(uid, now)

    def _end_live(self, uid: str, now: float) -> None:
        pod = self._live.pop(uid, None)
        self._asked.pop(uid, None)
        if pod is not None:
            self._leave(pod.workload)
            self._past[uid] = pod
            self._ended[uid] = now

    def _clear_address(self, uid: str) -> None:
        pod = self._past[uid]
        self._forget(uid, pod.ips)
        if pod.host_network:
            for at in [at for at, owner in self._ports.items() if owner == uid]:
                del self._ports[at]

    def _forget(self, uid: str, ips: Iterable[str]) -> None:
        """Those of these addresses that stand for it."""
        for ip in ips:
            if self._ips.get(ip) == uid:
                del self._ips[ip]


def _addresses(row: PodRow) -> tuple[str, ...]:
    return tuple(ip for ip in map(_canonical, (row.ip, *row.other_ips)) if ip)


def _address(endpoint: str) -> RemoteEnd | None:
    plain = _IPV4.fullmatch(endpoint)
    if plain:
        return RemoteEnd(plain[1], int(plain[2] or 0))
    host, port = endpoint, ""
    if endpoint.startswith("["):
        host, _, tail = endpoint[1:].partition("]")
        port = tail.removeprefix(":")
    elif endpoint.count(":") == 1:
        host, _, port = endpoint.partition(":")
    if port and not (port.isascii() and port.isdecimal() and len(port) <= 5):
        return None
    ip = _canonical(host)
    return RemoteEnd(ip, int(port or 0)) if ip else None


@lru_cache(maxsize=16_384)
def _canonical(text: str) -> str:
    """One form for each address; empty when it is none."""
    try:
        ip = ip_address(text)
    except ValueError:
        return ""
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return str(mapped or ip)
