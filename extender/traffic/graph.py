"""The cluster graph: the traffic that all enforcers report, joined to pods and rolled up to workloads.

An enforcer names its own pods by uid and everything else by address. A pair on one node is reported once, by uids. A
pair on two nodes is reported by both: the server's node names the client by its address, the client's node the server
by its own, or by a Service's, behind which only the server's node sees the pair. An address is resolved as

  - the client's (flow.by_server): a pod with that address. A node's address is no pod's here: it stands for whatever is
    on the node's network or translated to it, and the client's node knows better;
  - the server's: a pod with that address, or the hostNetwork pod that its own node has seen serve that port;
  - where no port shows who serves, the target counts as the server.

The server's count is the one that counts. The client's, kept apart, stands in where the server's node reports nothing:
it runs no enforcer, sees the client behind another address, or has been silent for a half-life while the client's goes
on.

What no pod is found for waits a little, since traffic may be reported before the API server lists the pod. Every byte
reported ends as exactly one of the `Fates`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from extender.state.pod_index import OUTSIDE, PodIndex, RemoteEnd, address
from extender.state.pods import Changes, PodRow
from extender.traffic.remembered import FADED, Remembered
from numakin.placement.traffic.graph import HALF_LIFE_S, Amount, Costs, Fading, Flow, Graph, Key, Sum

WAIT_S = 30.0
"""Seconds for which traffic of an unknown address waits for its pod. An address is rarely given anew in that time."""

MOST_EDGES = 100_000
"""Directed edges between pods, of both ends' reports together: some 40 MB."""

MOST_WAITING = 20_000
"""Flows that wait; over that a flow is counted as unresolved at once."""


class PodPair(NamedTuple):
    """One direction between two pods, as one end's node reports it. server: the end that serves the other; empty on one
    node, where there is one report only. claimed: by the client's node, of a pair on two nodes.
    """

    source: str
    target: str
    kind: str
    server: str = ""
    claimed: bool = False


class _PairSums(Fading[PodPair]):
    """What both ends report of each pair."""

    def rates(self, now: float) -> dict[Key, Amount]:
        """What each edge carries in a second, each pair counted once."""
        left, rates = self.in_a_second(now), dict[Key, Amount]()
        for pair, total in self._believed():
            key, rate = Key(*pair[:3]), Amount(left * total.bytes, left * total.messages)
            rates[key] = rates[key].plus(rate) if key in rates else rate
        return rates

    def tidy(self, now: float) -> None:
        """Forgets what has faded."""
        oldest = now - FADED * self.half_life
        self._sums = {pair: total for pair, total in self._sums.items() if total.at > oldest}

    def _believed(self) -> Iterator[tuple[PodPair, Sum]]:
        for pair, total in self._sums.items():
            other = self._sums.get(PodPair(*pair[:4], not pair.claimed)) if pair.server else None
            silent = other is not None and other.at - total.at > self.half_life
            if not pair.claimed:
                yield pair, other if other is not None and silent else total
            elif other is None:
                yield pair, total


@dataclass(slots=True)
class Fates:
    """Bytes by what became of them.

    told: reported by the server's node, or of one node. claimed: reported by the client's. outside: with pods that have
    not opted in.
    unresolved: with addresses of no pod (Services, nodes, the world). externally_managed: of pods that are on another
    node than the one that reported them, or of no pod at all.
    """

    told: int = 0
    claimed: int = 0
    outside: int = 0
    unresolved: int = 0
    externally_managed: int = 0


@dataclass(frozen=True, slots=True)
class _Waiting:
    node: str
    flow: Flow
    at: float


class ClusterGraph:
    """One owner. Times are seconds of any clock that never runs backwards. application_label: as for `PodIndex`."""

    def __init__(
        self,
        half_life: float = HALF_LIFE_S,
        most_edges: int = MOST_EDGES,
        costs: Costs | None = None,
        application_label: str = "",
    ) -> None:
        self.pod_index = PodIndex(application_label)
        self.remembered = Remembered(half_life)
        self.fates = Fates()
        self._sums = _PairSums(half_life, most_edges, costs)
        self._waiting: dict[str, list[_Waiting]] = {}
        self._count = 0

    @property
    def dropped(self) -> int:
        """Edges that the caps have cost so far."""
        return self._sums.dropped + self.remembered.dropped

    @property
    def waiting_bytes(self) -> int:
        return sum(held.flow.bytes for waiting in self._waiting.values() for held in waiting)

    def apply(self, changes: Changes[PodRow], now: float) -> None:
        """Pods came, changed or went."""
        for ip in self.pod_index.apply(changes, now):
            self._look_again(ip)

    def asked(self, row: PodRow, now: float) -> None:
        """Enters a pod that kube-scheduler asks about, where no API server is watched."""
        self.pod_index.asked(row, now)

    def add(self, node: str, flows: Iterable[Flow], now: float) -> None:
        """What one node's enforcer reports of the seconds before `now`."""
        for flow in flows:
            ip = self._take(node, flow, now)
            if ip:
                self._wait(ip, _Waiting(node, flow, now))

    def pods(self, now: float) -> Graph:
        """Between pods, by uid."""
        return Graph(self._sums.rates(now), self._sums.costs, self.dropped)

    def workloads(self, pods: Graph, now: float) -> Graph:
        """Between workloads, with what is remembered of those that have no pod now. pods: as `pods` gave it for now.

        Asked for in turn: what has no pod any more is remembered as it was the last time.
        """
        rolled_up = pods.rolled_up(self.pod_index.owners())
        return self.remembered.after(rolled_up, self.pod_index.replicas(), now)

    def tidy(self, now: float) -> None:
        """Forgets what is too old to matter; what has waited in vain is unresolved."""
        self._sums.tidy(now)
        self.pod_index.tidy(now, lasting=FADED * self._sums.half_life)
        for ip in list(self._waiting):
            late = [held for held in self._waiting[ip] if now - held.at > WAIT_S]
            for held in late:
                self.fates.unresolved += held.flow.bytes
            self._keep(ip, [held for held in self._waiting[ip] if now - held.at <= WAIT_S])

    def _take(self, node: str, flow: Flow, at: float) -> str:
        """The address for whose pod it has to wait; empty when its fate is settled."""
        source, target = address(flow.source), address(flow.target)
        remote = source or target
        ours = (flow.target,) if source else (flow.source,) if target else (flow.source, flow.target)
        if (source and target) or any(self.pod_index.node(uid) not in {"", node} for uid in ours):
            self.fates.externally_managed += flow.bytes
            return ""
        if remote is None:
            self._count_in(PodPair(flow.source, flow.target, flow.kind), flow, at)
            return ""
        uid = ours[0]
        peer = self._peer(uid, remote, by_server=flow.by_server)
        if peer is None:
            return remote.ip
        if peer == OUTSIDE:
            self.fates.outside += flow.bytes
            return ""
        ends = (peer, uid) if source else (uid, peer)
        server = uid if flow.by_server else peer if remote.port else ends[1]
        self._count_in(PodPair(*ends, flow.kind, server, claimed=server != uid), flow, at)
        return ""

    def _peer(self, uid: str, remote: RemoteEnd, *, by_server: bool) -> str | None:
        if not by_server:
            return self.pod_index.server(remote)
        for ip in self.pod_index.serves(uid, remote.port):
            self._look_again(ip)
        return self.pod_index.by_ip(remote.ip)

    def _count_in(self, pair: PodPair, flow: Flow, at: float) -> None:
        if pair.claimed:
            self.fates.claimed += flow.bytes
        else:
            self.fates.told += flow.bytes
        if pair.source != pair.target:
            self._sums.count(pair, flow.bytes, flow.messages, at)

    def _wait(self, ip: str, held: _Waiting) -> None:
        if self._count >= MOST_WAITING:
            self.fates.unresolved += held.flow.bytes
            return
        self._waiting.setdefault(ip, []).append(held)
        self._count += 1

    def _look_again(self, ip: str) -> None:
        """After something was learned of the address."""
        # Taken out first: to take one may lead here again.
        waiting = self._waiting.get(ip, [])
        self._keep(ip, [])
        self._keep(ip, [held for held in waiting if self._take(held.node, held.flow, held.at)])

    def _keep(self, ip: str, kept: list[_Waiting]) -> None:
        self._count += len(kept) - len(self._waiting.get(ip, ()))
        if kept:
            self._waiting[ip] = kept
        else:
            self._waiting.pop(ip, None)
