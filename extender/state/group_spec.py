"""What the operator's AffinityGroup objects ask for, by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.state.workload_locations import WorkloadLocations
from numakin.placement.optin.options import Defaults
from numakin.placement.optin.parsing import NOTHING as SILENT

USUAL = 1
"""The priority of a workload that its group's object does not name."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Of one group. defaults: for pods that do not say it themselves. priorities: by workload, NAMESPACE/KIND/NAME, how
    many times as heavy its members are as kin. edges: by two workloads, who will talk to whom, each with its weight.
    """

    defaults: Defaults = SILENT
    priorities: Mapping[str, int] = field(default_factory=dict, hash=False)
    edges: Mapping[tuple[str, str], int] = field(default_factory=dict, hash=False)

    def weighed(self, weights: Mapping[str, float], locations: WorkloadLocations) -> dict[str, float]:
        """Kin weights by pod uid, each times its workload's priority; who has priority 0 stays, and weighs nothing."""
        return {uid: weight * self.priorities.get(locations.workload(uid), USUAL) for uid, weight in weights.items()}


NOTHING = GroupSpec()

Specs = Mapping[str, GroupSpec]
"""By group, NAMESPACE/NAME."""
