"""What was scored and what then happened, for explain: bounded, the oldest forgotten first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.scoring.predict import Wanted, opt_ins
from extender.state.columns.arrays import Floats, Objects
from extender.state.kins import Kins
from extender.state.node_domains import NO_DOMAINS, NodeDomains
from extender.state.node_report import DecisionRow
from extender.state.node_view import Assumption, NodeView
from extender.state.pods import PodRow
from numakin.placement.decide.decide import Kin

OFFERS = 256
"""Scored pods remembered; each keeps alive the views it was scored on, so that explain repeats the same decisions."""

DECIDED_PODS = 20_000
DECISIONS_OF_POD = 16

DECISION_BYTES = 128 << 20
"""Of all decisions' texts: 20,000 pods with three usual ones each have less."""


@dataclass(frozen=True, slots=True)
class ExplainRow:
    """One offered node as it was scored. view None: no enforcer known. age: of its data, in seconds."""

    node: str
    view: NodeView | None
    kin: Kin
    score: int
    age: float


@dataclass(frozen=True, slots=True)
class Offer:
    """One answer to /prioritize. at: on the cluster's clock. names to ages: of each offered node, as `ExplainRow` has
    them; the scores are a byte each, since hundreds of answers are kept.

    kin_hidden: the pod's group has members, and none of the nodes that they are on was among those to score. domains:
    which nodes were near each other.
    """

    want: Wanted
    at: float
    names: Sequence[str] | Objects
    views: Sequence[NodeView | None]
    kins: Kins
    scores: bytes
    ages: Floats
    kin_hidden: bool = False
    domains: NodeDomains = NO_DOMAINS

    def row(self, at: int) -> ExplainRow:
        return ExplainRow(
            self.names[at], self.views[at], self.kins.of(self.names[at]), self.scores[at], float(self.ages[at])
        )

    def beside(self, node: str) -> list[str]:
        """Where kin are that pull the pod there from other nodes, in words."""
        return self.domains.beside(node, self.kins)

    @property
    def rows(self) -> tuple[ExplainRow, ...]:
        """Made when it is asked for: there may be thousands, and hundreds of offers are kept."""
        return tuple(map(self.row, range(len(self.names))))

    def best(self, count: int) -> list[ExplainRow]:
        """Of those alike the first."""
        best = np.argsort(-np.frombuffer(self.scores, dtype=np.int8), kind="stable")[:count]
        return [self.row(at) for at in best.tolist()]


class History:
    """Not thread-safe: the cluster's lock is around it."""

    def __init__(self) -> None:
        self._offers: OrderedDict[str, Offer] = OrderedDict()
        self._decisions: OrderedDict[str, tuple[DecisionRow, ...]] = OrderedDict()
        self._uids: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._unscored: OrderedDict[str, str] = OrderedDict()
        self._bytes = 0

    def offered(self, offer: Offer) -> None:
        """Kept with its names in an array, which the garbage collector does not go through, as it does a tuple."""
        pod = offer.want.pod
        self._offers[pod.uid] = replace(offer, names=np.fromiter(offer.names, np.object_, len(offer.names)))
        self._offers.move_to_end(pod.uid)
        self._name(pod.namespace, pod.name, pod.uid)
        if len(self._offers) > OFFERS:
            self._offers.popitem(last=False)

    def decided(self, rows: Iterable[DecisionRow]) -> None:
        for row in rows:
            known = self._decisions.get(row.pod, ())
            self._keep(row.pod, (*known, row)[-DECISIONS_OF_POD:], row, known[: 1 - DECISIONS_OF_POD])
            self._decisions.move_to_end(row.pod)
            self._name(row.namespace, row.name, row.pod)
        self._trim()

    def remembered(self, rows: Iterable[DecisionRow]) -> None:
        """What was decided before, and may be known already: before this extender's time, or while it was away. In
        their order; where as many are known as are kept, these are later.
        """
        for row in [*rows][::-1]:
            known = self._decisions.get(row.pod, ())
            if row not in known and len(known) < DECISIONS_OF_POD:
                self._keep(row.pod, (row, *known), row, ())
                if (row.namespace, row.name) not in self._uids:
                    self._name(row.namespace, row.name, row.pod)
        self._trim()

    def unscored(self, namespace: str, name: str, uid: str, why: str) -> None:
        """The pod was bound, and kube-scheduler had nothing to choose from. why: in a sentence."""
        self._unscored[uid] = why
        self._name(namespace, name, uid)
        if len(self._unscored) > DECIDED_PODS:
            self._unscored.popitem(last=False)

    def reasons_unscored(self, uids: Iterable[str]) -> dict[str, str]:
        """By uid, why kube-scheduler did not ask for scores, of those of which that is remembered."""
        return {uid: why for uid in uids if (why := self._unscored.get(uid)) is not None}

    def offer(self, uid: str) -> Offer | None:
        return self._offers.get(uid)

    def decisions(self, uid: str) -> tuple[DecisionRow, ...]:
        return self._decisions.get(uid, ())

    def uid(self, namespace: str, name: str) -> str:
        """Of the pod that had this name last; empty where it is not remembered."""
        return self._uids.get((namespace, name), "")

    def story(self, uid: str, assumption: Assumption | None, at: float) -> PodStory:
        return PodStory(uid, self.offer(uid), self.decisions(uid), assumption, at, self._unscored.get(uid))

    def names(self) -> dict[str, str]:
        """uid -> NAMESPACE/NAME of every pod that was scored or decided lately."""
        return {uid: f"{namespace}/{name}" for (namespace, name), uid in self._uids.items()}

    def _keep(
        self, pod: str, rows: tuple[DecisionRow, ...], new: DecisionRow, dropped: tuple[DecisionRow, ...]
    ) -> None:
        self._decisions[pod] = rows
        self._bytes += new.size - sum(row.size for row in dropped)

    def _trim(self) -> None:
        while len(self._decisions) > DECIDED_PODS or self._bytes > DECISION_BYTES:
            _, rows = self._decisions.popitem(last=False)
            self._bytes -= sum(row.size for row in rows)

    def _name(self, namespace: str, name: str, uid: str) -> None:
        self._uids[namespace, name] = uid
        self._uids.move_to_end((namespace, name))
        while len(self._uids) > DECIDED_PODS:
            self._uids.popitem(last=False)


@dataclass(frozen=True, slots=True)
class PodStory:
    """All that is remembered of one pod. offer: None before it was scored here; at: when this was read, in seconds.
    unscored: why kube-scheduler did not ask for scores; None: it did, or is not known to have bound the pod. row: the
    pod as the API server has it; gone: it has told all that it has, and this one is not among them.
    """

    uid: str
    offer: Offer | None
    decisions: tuple[DecisionRow, ...]
    assumption: Assumption | None
    at: float
    unscored: str | None = None
    row: PodRow | None = None
    gone: bool = False

    @property
    def known(self) -> bool:
        """Whether there is something to tell: it is remembered, or has opted in."""
        told = self.offer or self.decisions or self.unscored
        return bool(told or (self.row is not None and opt_ins(self.row)))
