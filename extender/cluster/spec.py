"""What the operator's AffinityGroup objects ask for, by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.cluster.seated import Seated
from placement.optin import NOTHING as SILENT
from placement.wishes import Defaults

USUAL = 1
"""The priority of a workload that its group's object does not name."""


@dataclass(frozen=True, slots=True)
class Spec:
    """Of one group. defaults: for pods that do not say it themselves. priorities: by workload, NAMESPACE/KIND/NAME, how
    many times as heavy its members are as kin.
    """

    defaults: Defaults = SILENT
    priorities: Mapping[str, int] = field(default_factory=dict, hash=False)

    def weighed(self, weights: Mapping[str, float], seated: Seated) -> dict[str, float]:
        """Kin weights by pod uid, each times its workload's priority; who has priority 0 stays, and weighs nothing."""
        return {uid: weight * self.priorities.get(seated.workload(uid), USUAL) for uid, weight in weights.items()}


NOTHING = Spec()

Specs = Mapping[str, Spec]
"""By group, NAMESPACE/NAME."""
