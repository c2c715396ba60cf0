"""Which nodes a pod may go to, by what it says of them (its node selector, required node affinity and tolerations) and
by the nodes' labels and taints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from numakin.placement.model.errors import BadTerms

KEPT_OUT = ("NoSchedule", "NoExecute")
"""The effects of taints that keep pods out; the others only prefer."""

_COMPARED = re.compile(r"([+-]?)0*([0-9]{1,19})")
_LEAST, _MOST = -(2**63), 2**63 - 1
"""The numbers that Kubernetes compares."""

Object = Mapping[str, Any]


class Labels(Protocol):
    """A node's."""

    def get(self, key: str, /) -> str | None: ...


class Taint(NamedTuple):
    """One that keeps pods out."""

    key: str
    value: str
    effect: str


class _Toleration(NamedTuple):
    """effect, key: empty: of any."""

    key: str
    exists: bool
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        if self.effect not in ("", taint.effect):
            return False
        if self.exists:
            return self.key in ("", taint.key)
        return (self.key, self.value) == (taint.key, taint.value)


class LabelExpression(NamedTuple):
    """Of one label, or field."""

    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, labels: Labels) -> bool:
        there = labels.get(self.key)
        match self.operator:
            case "In":
                return there in self.values
            case "NotIn":
                return there not in self.values
            case "Exists":
                return there is not None
            case "DoesNotExist":
                return there is None
            case _:
                return self._compares(there)

    def _compares(self, there: str | None) -> bool:
        """Gt and Lt, of whole numbers."""
        label, bound = (_number(text) for text in (there or "", "".join(self.values[:1])))
        if label is None or bound is None:
            return False
        return label > bound if self.operator == "Gt" else label < bound


OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})


class _NodeTerm(NamedTuple):
    """All of it holds; without anything it holds nowhere."""

    by_label: tuple[LabelExpression, ...]
    by_field: tuple[LabelExpression, ...]

    def holds(self, name: str, labels: Labels) -> bool:
        return bool(self.by_label or self.by_field) and (
            all(expression.holds(labels) for expression in self.by_label)
            and all(expression.holds({"metadata.name": name}) for expression in self.by_field)
        )


class NodeTerms(NamedTuple):
    """Of pods alike. required: the terms of the node affinity, of which one has to hold; None: it has none."""

    selector: frozenset[tuple[str, str]] = frozenset()
    required: tuple[_NodeTerm, ...] | None = None
    tolerations: frozenset[_Toleration] = frozenset()

    @classmethod
    def of(cls, selector: Object | None, required: Object | None, tolerations: Any) -> NodeTerms:
        """As a pod's spec has them. BadTerms when they can't be read."""
        try:
            return cls(
                frozenset((_text(key), _text(value)) for key, value in (selector or {}).items()),
                tuple(_term(term) for term in required.get("nodeSelectorTerms") or ()) if required else None,
                frozenset(_toleration(toleration) for toleration in tolerations or ()),
            )
        except KeyError as missing:
            raise BadTerms(f"an expression has no {missing.args[0]}") from missing
        except (TypeError, AttributeError) as bad:
            raise BadTerms("a field has another type than it should") from bad

    def admits(self, name: str, labels: Labels, taints: tuple[Taint, ...]) -> bool:
        """Whether the pod may go to the node. taints: those that keep pods out."""
        return (
            all(any(toleration.tolerates(taint) for toleration in self.tolerations) for taint in taints)
            and all(labels.get(key) == value for key, value in self.selector)
            and (self.required is None or any(term.holds(name, labels) for term in self.required))
        )


NO_TERMS = NodeTerms()


def _term(term: Object) -> _NodeTerm:
    return _NodeTerm(
        *(tuple(map(label_expression, term.get(name) or ())) for name in ("matchExpressions", "matchFields"))
    )


def label_expression(expression: Object) -> LabelExpression:
    """KeyError, TypeError, AttributeError, BadTerms when it can't be read."""
    operator = _text(expression["operator"])
    if operator not in OPERATORS:
        raise BadTerms(f"no operator is called {operator}")
    return LabelExpression(_text(expression["key"]), operator, tuple(map(_text, expression.get("values") or ())))


def _toleration(toleration: Object) -> _Toleration:
    key, operator, value, effect = (
        _text(toleration.get(name) or "") for name in ("key", "operator", "value", "effect")
    )
    if operator not in ("", "Exists", "Equal"):
        raise BadTerms(f"no operator of tolerations is called {operator}")
    return _Toleration(key, operator == "Exists", value, effect)


def _number(text: str) -> int | None:
    """None for what is none to Kubernetes, of however many digits."""
    match = _COMPARED.fullmatch(text)
    number = int(match[1] + match[2]) if match else None
    return number if number is not None and _LEAST <= number <= _MOST else None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
