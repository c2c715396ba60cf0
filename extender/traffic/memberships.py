"""The groups that were found, and why each of their workloads is a member. Values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.traffic.exchanged import Traffic

NAMED = 3
"""Partners that a reason names."""


@dataclass(frozen=True, slots=True)
class Membership:
    """group: NAMESPACE/name. share: of the workload's traffic with other opted-in workloads of its namespace, what
    stays in the group. partners: those of it that it talks with most; size: how many of it it talks with. relay: it
    passes on what it receives, and so joins no workload with its group. expected: none of that traffic was seen yet.
    application: the one that the workload is of, and within which its group was found; empty: its namespace.
    """

    group: str
    share: float
    partners: tuple[str, ...] = ()
    size: int = 0
    relay: bool = False
    expected: bool = False
    application: str = ""

    @property
    def reason(self) -> str:
        names = ", ".join(partner.rpartition("/")[2] for partner in self.partners)
        more = f" and {self.size - len(self.partners)} more" if self.size > len(self.partners) else ""
        if self.expected:
            return f"expected to talk with {names}{more}, by what is written down: no traffic was seen yet"
        passing = "a relay: passes on what it receives; " if self.relay else ""
        within = f"application {self.application}" if self.application else "its namespace"
        return f"{passing}exchanges {round(100 * self.share)} % of its traffic within {within} with {names}{more}"


@dataclass(frozen=True, slots=True)
class Partition:
    """Memberships by workload; a workload on its own has none."""

    members: Mapping[str, Membership] = field(default_factory=dict)

    def groups(self) -> dict[str, list[str]]:
        """Workloads by group, both in ascending order."""
        workloads: dict[str, list[str]] = defaultdict(list)
        for workload in sorted(self.members):
            workloads[self.members[workload].group].append(workload)
        return dict(sorted(workloads.items()))


NO_GROUPS = Partition()


def membership(traffic: Traffic, workload: str, groups: Mapping[str, str]) -> Membership:
    inside = {peer: weight for peer, weight in traffic.peers[workload].items() if groups.get(peer) == groups[workload]}
    share = sum(inside.values()) / (traffic.strength[workload] or 1.0)
    heaviest = sorted(inside, key=lambda peer: (-inside[peer], peer))
    return Membership(groups[workload], share, tuple(heaviest[:NAMED]), len(inside))
