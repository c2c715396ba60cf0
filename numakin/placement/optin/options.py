"""What a pod may ask for: the values of the annotations, as types.

`optin` reads them from our own keys, `katalyst` from Katalyst's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Policy(StrEnum):
    """The kubelet topology manager's policies."""

    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"
    NONE = "none"


class Scope(StrEnum):
    """Whether a pod that no NUMA node holds is aligned as one all the same, or each container by itself."""

    POD = "pod"
    CONTAINER = "container"


class Cpus(StrEnum):
    """Which CPUs: the NUMA node's shared pool, a part of it that stays what it is, exclusive CPUs, or own physical
    cores.
    """

    SHARED = "shared"
    SHARED_STABLE = "shared-stable"
    EXCLUSIVE = "exclusive"
    EXCLUSIVE_CORES = "exclusive-cores"

    @property
    def own(self) -> bool:
        """Whether no other container shares them."""
        return self in _OWN


_OWN = frozenset({Cpus.EXCLUSIVE, Cpus.EXCLUSIVE_CORES})


class Span(StrEnum):
    """How far shared CPUs reach: over the NUMA node, or over one of its last-level caches while that has room."""

    NUMA = "numa"
    CACHE = "cache"


class Memory(StrEnum):
    """How `cpuset.mems` is set: bound while that is safe, always, or never."""

    AUTO = "auto"
    BIND = "bind"
    PREFER = "prefer"


class Move(StrEnum):
    """What may happen to a running container."""

    CPUS = "cpus"
    NEVER = "never"
    CPUS_AND_MEMORY = "cpus-and-memory"


class Regroup(StrEnum):
    """Whether the pod may be evicted to come together with its group again; alone: also where no other ready pod does
    its work meanwhile.
    """

    NEVER = "never"
    EVICT = "evict"
    EVICT_ALONE = "evict-alone"


class Pool(StrEnum):
    """Which of a machine's pools a container runs in when its CPUs are not its own.

    shared: where opted-in members are. reclaimed: what the shared pool's requests leave over. reserved: the operator's
    reserved CPUs. Only Katalyst's QoS levels choose another than the first.
    """

    SHARED = "shared"
    RECLAIMED = "reclaimed"
    RESERVED = "reserved"


@dataclass(frozen=True, slots=True)
class OptIn:
    """What one container asked for.

    group: NAMESPACE/name, or empty when the group is to be learned from traffic. size: members expected, 0: unknown.
    alone: no other opted-in pod on its NUMA nodes, those in the reclaimed pool aside. span: None where the operator's
    rules say. cpus_named: `cpus` was said of this container by name, not of its pod.
    """

    group: str
    policy: Policy = Policy.BEST_EFFORT
    scope: Scope = Scope.POD
    cpus: Cpus = Cpus.SHARED
    memory: Memory = Memory.AUTO
    move: Move = Move.CPUS
    size: int = 0
    pool: Pool = Pool.SHARED
    alone: bool = False
    span: Span | None = None
    cpus_named: bool = False
    regroup: Regroup = Regroup.NEVER

    @property
    def auto(self) -> bool:
        return not self.group


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a group says for its members that do not say it themselves. policy None, size 0: nothing."""

    policy: Policy | None = None
    size: int = 0

    @property
    def fields_set(self) -> dict[str, object]:
        """As fields of an `OptIn`."""
        fields: dict[str, object] = {"policy": self.policy, "size": self.size}
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class AnnotationProblem:
    """An annotation that was not taken, worded for an Event on the pod."""

    key: str
    value: str
    allowed: str

    def __str__(self) -> str:
        value = self.value if len(self.value) <= 64 else self.value[:61] + "..."
        return f"annotation {self.key}: {value!r} is not allowed; allowed: {self.allowed}"


@dataclass(frozen=True, slots=True)
class Problems:
    """The annotations of a pod that were not taken. more: how many there are beside those that are named."""

    named: tuple[AnnotationProblem, ...] = ()
    more: int = 0

    def __bool__(self) -> bool:
        return bool(self.named)

    @property
    def count(self) -> int:
        return len(self.named) + self.more

    @property
    def lines(self) -> tuple[str, ...]:
        rest = (f"and {self.more} more annotations that are not allowed",) if self.more else ()
        return (*map(str, self.named), *rest)


class BadValue(ValueError):
    """The value is none of the allowed, which its text names."""
