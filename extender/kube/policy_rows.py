"""NetworkPolicies from the API server's JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from extender.kube.rows import Metadata
from extender.kube.stream import Resource, namespaced_name, resource
from extender.traffic.limits import PEERS_OF_POLICY, TERMS_OF_SELECTOR
from extender.traffic.policies import PolicyPeer, PolicyRow, Requirement, Selector, with_labels

INGRESS, EGRESS = "Ingress", "Egress"


class _Expression(msgspec.Struct):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class _LabelSelector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Expression] | None = None

    @property
    def terms(self) -> int:
        expressions = self.match_expressions or ()
        return len(self.match_labels or ()) + sum(1 + len(expression.values or ()) for expression in expressions)

    @property
    def selector(self) -> Selector:
        expressions = (
            Requirement(expression.key, expression.operator, frozenset(expression.values or ()))
            for expression in self.match_expressions or ()
        )
        return Selector((*with_labels(self.match_labels or {}).requirements, *expressions))


class _Peer(msgspec.Struct, rename="camel"):
    pod_selector: _LabelSelector | None = None
    namespace_selector: _LabelSelector | None = None


class _Rule(msgspec.Struct):
    """peers: `from` of an ingress rule, `to` of an egress rule."""

    source: list[_Peer] | None = msgspec.field(name="from", default=None)
    to: list[_Peer] | None = None


class _PolicySpec(msgspec.Struct, rename="camel"):
    pod_selector: _LabelSelector = msgspec.field(default_factory=_LabelSelector)
    policy_types: list[str] | None = None
    ingress: list[_Rule] | None = None
    egress: list[_Rule] | None = None

    def rules(self, kind: str) -> Iterable[_Rule]:
        """Those of a type that is in force: without types, ingress always, and egress where it has rules."""
        rules = (self.ingress if kind == INGRESS else self.egress) or ()
        return rules if not self.policy_types or kind in self.policy_types else ()


class PolicyObject(msgspec.Struct):
    """A NetworkPolicy as the API server sends it, reduced."""

    metadata: Metadata
    spec: _PolicySpec = msgspec.field(default_factory=_PolicySpec)


class _Reading:
    """Of one policy. over: the limits that it was found to exceed."""

    def __init__(self) -> None:
        self.over: set[str] = set()
        self._peers = 0

    def selector(self, given: _LabelSelector | None) -> Selector | None:
        """None where it is about all pods, or too long."""
        if given is None or given.terms == 0:
            return None
        if given.terms > TERMS_OF_SELECTOR:
            self.over.add("terms_of_selector")
            return None
        return given.selector

    def peers(self, given: Iterable[_Peer]) -> Iterator[PolicyPeer]:
        for peer in given:
            pods = self.selector(peer.pod_selector)
            wide = peer.namespace_selector is not None and peer.namespace_selector.terms == 0
            namespaces = Selector() if wide else self.selector(peer.namespace_selector)
            if pods is None or (peer.namespace_selector is not None and namespaces is None):
                continue
            if self._peers == PEERS_OF_POLICY:
                self.over.add("peers_of_policy")
                return
            self._peers += 1
            yield PolicyPeer(pods, namespaces)


def policy_row(policy: PolicyObject) -> PolicyRow:
    """Without peers where it is about all pods of its namespace."""
    metadata, spec, reading = policy.metadata, policy.spec, _Reading()
    selector = reading.selector(spec.pod_selector)
    clients: tuple[PolicyPeer, ...] = ()
    servers: tuple[PolicyPeer, ...] = ()
    if selector is not None:
        clients = tuple(reading.peers(peer for rule in spec.rules(INGRESS) for peer in rule.source or ()))
        servers = tuple(reading.peers(peer for rule in spec.rules(EGRESS) for peer in rule.to or ()))
    over = tuple(sorted(reading.over))
    return PolicyRow(metadata.namespace, metadata.name, selector or Selector(), clients, servers, over)


def policies() -> Resource[PolicyRow]:
    """All of them, to list and watch."""
    return resource(
        "/apis/networking.k8s.io/v1/networkpolicies", PolicyObject, policy_row,
        key=lambda row: row.key, gone_key=namespaced_name,
    )  # fmt: skip
