"""Which namespaces' pods may draw each other: those of one namespace, and of namespaces that an operator joined.

Whoever sends traffic to a pod of another namespace would else decide where that pod's replicas go, and come to live
beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from placement.model.names import is_label

ALL = "*"
"""For a cluster with one tenant: every namespace is joined with every other."""

Weight = TypeVar("Weight")


@dataclass(frozen=True, slots=True)
class Tenancy:
    """joined: sets of namespaces whose pods may be kin of each other. everyone: all of them may."""

    joined: tuple[frozenset[str], ...] = ()
    everyone: bool = False

    @classmethod
    def parse(cls, text: str) -> Tenancy:
        """From `shop+payments,web+api`, or `*`. ValueError names what is no namespace."""
        if text == ALL:
            return cls(everyone=True)
        joined = tuple(frozenset(part.split("+")) for part in text.split(",") if part)
        for name in sorted(name for names in joined for name in names):
            if not is_label(name):
                raise ValueError(f"{name!r} is not a namespace; allowed: NS+NS[+NS...][,NS+NS...], or *")
        return cls(joined)

    def together(self, namespace: str, other: str) -> bool:
        """Whether pods of these namespaces may be kin."""
        return (
            namespace == other or self.everyone or any(namespace in names and other in names for names in self.joined)
        )

    def within(
        self, weights: Mapping[tuple[str, str], Weight], workloads: Mapping[str, str] | None = None
    ) -> dict[tuple[str, str], Weight]:
        """The pairs that may be kin. workloads: NAMESPACE/KIND/NAME by pod; None where the ends are workloads. A pod of
        unknown workload is nobody's kin.
        """
        return {
            (end, other): weight
            for (end, other), weight in weights.items()
            if (mine := _namespace(end, workloads)) and self.together(mine, _namespace(other, workloads))
        }


SEPARATE = Tenancy()
"""Each namespace by itself."""


def _namespace(end: str, workloads: Mapping[str, str] | None) -> str:
    return (end if workloads is None else workloads.get(end, "")).partition("/")[0]
