"""How much of a node's placing other owners of cpusets leave to numakin."""

from __future__ import annotations

from dataclasses import dataclass

POWERLESS = 0.5
"""Share of the containers that opted in from which a node counts as one without an enforcer: a plugin that confines
every container leaves us none, one that confines those of a claim leaves us most.
"""


@dataclass(frozen=True, slots=True)
class Yielded:
    """Of a node's live containers. members: those that opted in. containers: those of them whose cpuset another owner
    sets. conflicts: those of these that a plugin claims which is asked after us.
    """

    containers: int = 0
    members: int = 0
    conflicts: int = 0

    @property
    def share(self) -> float:
        """0 without any member."""
        return self.containers / self.members if self.members else 0.0

    @property
    def powerless(self) -> bool:
        """Whether who comes next will probably not be placed by numakin."""
        return self.share >= POWERLESS

    def __str__(self) -> str:
        owned = f"{self.containers} of {self.members} containers that opted in have their cpuset set by another owner"
        return f"{owned}, {self.conflicts} of them by an NRI plugin that is asked later" if self.conflicts else owned


NONE = Yielded()
