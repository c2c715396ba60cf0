"""What an operator sets on Namespace objects, by annotation: whom a namespace's pods may be kin of, and its quota."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numakin.placement.optin import quotas
from numakin.placement.optin.parsing import DOMAIN
from numakin.placement.optin.quotas import UNLIMITED, Quota
from numakin.placement.traffic import tenancy
from numakin.placement.traffic.tenancy import MOST_NAMES, NO_NAMESPACES, Tenancy

AFFINITY_KEY = f"{DOMAIN}/affinity-with"


@dataclass(frozen=True, slots=True)
class NamespaceTerms:
    """Of one namespace. affinity_with: as `Tenancy.allowed`. labels: the object's own where it allows others."""

    affinity_with: frozenset[str] = NO_NAMESPACES
    quota: Quota = UNLIMITED
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)


NOTHING = NamespaceTerms()


@dataclass(frozen=True, slots=True)
class Namespaces:
    """settings: by name, of the namespaces that have any."""

    settings: Mapping[str, NamespaceTerms] = field(default_factory=dict)

    @property
    def tenancy(self) -> Tenancy:
        return Tenancy({name: own.affinity_with for name, own in self.settings.items() if own.affinity_with})

    @property
    def quotas(self) -> dict[str, Quota]:
        """Of the namespaces that have one."""
        return {name: own.quota for name, own in self.settings.items() if own.quota != UNLIMITED}


def read(annotations: Mapping[str, str]) -> tuple[NamespaceTerms, tuple[str, ...]]:
    """What a Namespace object's annotations set, and what of them is not taken, in words for the operator."""
    quota, problems = quotas.read(annotations)
    names, left_out = tenancy.read(annotations.get(AFFINITY_KEY, ""))
    if left_out:
        shown = ", ".join(repr(name[:64]) for name in left_out[:MOST_NAMES])
        allowed = f"* or at most {MOST_NAMES} namespaces with commas between"
        problems += (f"annotation {AFFINITY_KEY}: {shown} is left out; allowed: {allowed}",)
    return NamespaceTerms(names, quota), problems
