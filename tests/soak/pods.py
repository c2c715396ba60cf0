"""The pods of the churn: what each asks for, and what must hold of it whatever fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random

GROUPS = ("cart", "search", "mail")


class Kind(Enum):
    """shared and exclusive have opted in; plain has not; claimed has not either, and its CPUs are another owner's."""

    SHARED = "shared"
    EXCLUSIVE = "exclusive"
    PLAIN = "plain"
    CLAIMED = "claimed"

    @property
    def member(self) -> bool:
        return self in (Kind.SHARED, Kind.EXCLUSIVE)


@dataclass(frozen=True, slots=True)
class PodSpec:
    """cpus: asked for. claim: CPUs that the kubelet's own policy gives it, in the kernel's list format."""

    name: str
    kind: Kind
    group: str
    cpus: float
    claim: str = ""

    @property
    def annotations(self) -> Mapping[str, str]:
        if not self.kind.member:
            return {}
        exclusive = {"cpus.numakin.io": "exclusive"} if self.kind is Kind.EXCLUSIVE else {}
        return {"group.numakin.io": self.group} | exclusive


@dataclass(frozen=True, slots=True)
class Room:
    """What a node takes at most, so that every member finds room. cpus: sizes that a container may ask for."""

    pods: int
    exclusive_cpus: int
    cpus: tuple[float, ...]
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """A container that was started."""

    id: str
    spec: PodSpec


@dataclass(slots=True)
class Draw:
    """Chooses the next pod of a node."""

    random: Random
    room: Room
    drawn: int = field(default=0)

    def pod(self, node: str, running: list[Running]) -> PodSpec:
        taken = sum(container.spec.cpus for container in running if container.spec.kind is Kind.EXCLUSIVE)
        cpus = self.random.choice(self.room.cpus)
        kinds = [Kind.SHARED, Kind.SHARED, Kind.PLAIN]
        kinds += [Kind.EXCLUSIVE] * 2 if taken + cpus <= self.room.exclusive_cpus else []
        kinds += [Kind.CLAIMED] if self.room.claim else []
        kind = self.random.choice(kinds)
        self.drawn += 1
        claim = self.room.claim if kind is Kind.CLAIMED else ""
        return PodSpec(f"{kind.value}-{node}-{self.drawn}", kind, self.random.choice(GROUPS), cpus, claim)
