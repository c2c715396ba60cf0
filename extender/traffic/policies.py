"""NetworkPolicies, reduced to what shows which workloads they let talk to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

IN, EXISTS = "In", "Exists"
"""The operators of the API's label selectors that ask for a label."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """operator: of the API's label selectors; one that is none of them holds for no workload."""

    key: str
    operator: str = EXISTS
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
        return False


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector. Without requirements it selects everything."""

    requirements: tuple[Requirement, ...] = ()

    @property
    def narrowing(self) -> tuple[Requirement, ...]:
        """Those that ask for a label; without any the selector is about all but a few."""
        return tuple(requirement for requirement in self.requirements if requirement.operator in (IN, EXISTS))

    def selects(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.holds(labels) for requirement in self.requirements)


def with_labels(labels: Mapping[str, str]) -> Selector:
    """Selects what has all of these labels."""
    return Selector(tuple(Requirement(key, IN, frozenset({value})) for key, value in sorted(labels.items())))


@dataclass(frozen=True, slots=True)
class PolicyPeer:
    """The pods of one peer of a rule. namespaces: by their labels; None: the policy's own."""

    pods: Selector
    namespaces: Selector | None = None


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One NetworkPolicy. clients, servers: who may talk to the pods that it selects, and whom they may talk to; without
    the peers that are all pods or addresses. over: the limits that it exceeds (`extender.traffic.limits`).
    """

    namespace: str
    name: str
    selector: Selector = Selector()
    clients: tuple[PolicyPeer, ...] = ()
    servers: tuple[PolicyPeer, ...] = ()
    over: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
