"""What pods say of each other by labels: which of them share a host, a zone or whatever else nodes' labels name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from numakin.placement.model.errors import BadTerms
from numakin.placement.model.node_terms import NO_TERMS, LabelExpression, NodeTerms, Object, label_expression

HOST = "kubernetes.io/hostname"
"""The label by which each node is a domain of its own."""

PodLabels = frozenset[tuple[str, str]]


class PodSelector(NamedTuple):
    """All of it holds for the labels of a pod."""

    labels: PodLabels
    expressions: tuple[LabelExpression, ...] = ()

    def matches(self, labels: PodLabels) -> bool:
        return self.labels <= labels and (
            not self.expressions or all(expression.holds(dict(labels)) for expression in self.expressions)
        )


class DomainTerm(NamedTuple):
    """Of pods in one domain. key: the label whose values name the domains."""

    key: str
    selector: PodSelector


class SpreadTerm(NamedTuple):
    """most: of the pods that are counted, so many more than in the domain with the fewest. least_domains: with fewer
    domains, those with the fewest have none. by_terms, by_taints: nodes that the pod's node selector and affinity, or
    taints, close to it do not count.
    """

    key: str
    selector: PodSelector
    most: int = 1
    least_domains: int = 1
    by_terms: bool = True
    by_taints: bool = False


class PodTerms(NamedTuple):
    """Of pods alike, as kube-scheduler holds to it. away: shares no domain with any of these. beside: shares one with
    some of these. spread: those like itself are spread over the domains.
    """

    away: tuple[DomainTerm, ...] = ()
    beside: tuple[DomainTerm, ...] = ()
    spread: tuple[SpreadTerm, ...] = ()

    @classmethod
    def of(cls, affinity: Any, spreads: Any, labels: Mapping[str, str]) -> PodTerms:
        """As a pod's spec has them; what is only preferred is none. BadTerms when they can't be read, or are of more
        than the pods of its namespace that its labels tell of.
        """
        try:
            away, beside = (_required(affinity, name) for name in ("podAntiAffinity", "podAffinity"))
            held = [each for each in spreads or () if each["whenUnsatisfiable"] == "DoNotSchedule"]
            return cls(
                tuple(_domain_term(term, labels) for term in away),
                tuple(_domain_term(term, labels) for term in beside),
                tuple(_spread_term(spread, labels) for spread in held),
            )
        except KeyError as missing:
            raise BadTerms(f"a term has no {missing.args[0]}") from missing
        except (TypeError, AttributeError) as bad:
            raise BadTerms("a field has another type than it should") from bad


NO_POD_TERMS = PodTerms()


class PodKind(NamedTuple):
    """Of pods alike. said: what they say of others; terms: and of nodes. ending: they are being deleted: nothing is
    spread with them.
    """

    labels: PodLabels
    said: PodTerms = NO_POD_TERMS
    terms: NodeTerms = NO_TERMS
    ending: bool = False

    @property
    def keys(self) -> frozenset[str]:
        """Of the domains that it says something of."""
        return frozenset(term.key for terms in self.said for term in terms)

    def excludes(self, other: PodKind) -> bool:
        """From its host: kube-scheduler holds to what either of them says."""
        return self._keeps_off(other) or other._keeps_off(self)

    def _keeps_off(self, other: PodKind) -> bool:
        return any(term.key == HOST and term.selector.matches(other.labels) for term in self.said.away)


NO_KIND = PodKind(frozenset())


def _required(affinity: Any, name: str) -> Iterable[Object]:
    return ((affinity or {}).get(name) or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ()


def _domain_term(term: Object, labels: Mapping[str, str]) -> DomainTerm:
    if term.get("namespaces") or term.get("namespaceSelector") is not None:
        raise BadTerms("it is of other namespaces")
    return DomainTerm(_key(term), _selector(term, labels))


def _spread_term(spread: Object, labels: Mapping[str, str]) -> SpreadTerm:
    selector = _selector(spread, labels)
    if not selector.matches(frozenset(labels.items())):
        raise BadTerms("it is of others than itself")
    return SpreadTerm(
        _key(spread), selector, _count(spread["maxSkew"]), _count(spread.get("minDomains") or 1),
        _policy(spread.get("nodeAffinityPolicy") or "Honor"), _policy(spread.get("nodeTaintsPolicy") or "Ignore"),
    )  # fmt: skip


def _key(term: Object) -> str:
    if not (key := _text(term["topologyKey"])):
        raise BadTerms("a term has no topologyKey")
    return key


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    if value < 1:
        raise BadTerms(f"{value} is less than one")
    return value


def _policy(text: str) -> bool:
    if text not in ("Honor", "Ignore"):
        raise BadTerms(f"no policy is called {text}")
    return text == "Honor"


def _selector(term: Object, labels: Mapping[str, str]) -> PodSelector:
    """One that selects nothing, or everything in the namespace, is none that the pods of a group tell of."""
    given = term.get("labelSelector") or {}
    wanted = {_text(key): _text(value) for key, value in (given.get("matchLabels") or {}).items()}
    pairs, expressions = {*wanted.items()}, []
    for expression in (*map(label_expression, given.get("matchExpressions") or ()), *_alike(term, labels)):
        if expression.operator == "In" and len(expression.values) == 1:
            pairs.add((expression.key, expression.values[0]))
        elif expression.operator in ("In", "NotIn", "Exists", "DoesNotExist"):
            expressions.append(expression)
        else:
            raise BadTerms(f"no operator of label selectors is called {expression.operator}")
    if not (pairs or expressions):
        raise BadTerms("a term selects no pods, or all")
    return PodSelector(frozenset(pairs), tuple(expressions))


def _alike(term: Object, labels: Mapping[str, str]) -> Iterator[LabelExpression]:
    """Those whose labels of these keys are the pod's own, or are not; the API server may have written it already."""
    for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(name) or ():
            if (value := labels.get(_text(key))) is not None:
                yield LabelExpression(key, operator, (value,))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
