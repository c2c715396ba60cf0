"""Which namespaces' pods may draw each other: those of one namespace, and of two that allow each other.

A sender of traffic to a pod of another namespace would else decide where that pod's replicas go, and come to live
beside it. What a namespace allows stands on its Namespace object, which its tenants can't write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from numakin.placement.model.names import is_label

ALL = "*"
"""Allows every namespace that allows this one."""

MOST_NAMES = 10
"""Namespaces that one may name in its annotation; what is named beyond them is left out, and said."""

NO_NAMESPACES: frozenset[str] = frozenset()

Weight = TypeVar("Weight")


@dataclass(frozen=True, slots=True)
class Tenancy:
    """allowed: by namespace, the others that it allows its pods to be kin of."""

    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def together(self, namespace: str, other: str) -> bool:
        """Whether pods of these namespaces may be kin."""
        return namespace == other or (self._allows(namespace, other) and self._allows(other, namespace))

    def within(
        self, weights: Mapping[tuple[str, str], Weight], workloads: Mapping[str, str] | None = None
    ) -> dict[tuple[str, str], Weight]:
        """The pairs that may be kin. workloads: NAMESPACE/KIND/NAME by pod; None where the ends are workloads. A pod of
        unknown workload has no kin.
        """
        return {
            (end, other): weight
            for (end, other), weight in weights.items()
            if (mine := _namespace(end, workloads)) and self.together(mine, _namespace(other, workloads))
        }

    def _allows(self, namespace: str, other: str) -> bool:
        allowed = self.allowed.get(namespace, NO_NAMESPACES)
        return bool(other) and (other in allowed or ALL in allowed)


SEPARATE = Tenancy()
"""Each namespace by itself."""


def read(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The namespaces that `shop,payments` (or `*`) allows, and what of it is left out: no namespace's name, or too
    many.
    """
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    good = [name for name in names if name == ALL or is_label(name)]
    left_out = [name for name in names if name not in good] + good[MOST_NAMES:]
    return frozenset(good[:MOST_NAMES]), tuple(left_out)


def _namespace(end: str, workloads: Mapping[str, str] | None) -> str:
    return (end if workloads is None else workloads.get(end, "")).partition("/")[0]
