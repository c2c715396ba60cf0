"""What a container or pod needs, from its requests and limits or, where those are unknown, from its cgroup's settings.

A demand says which of its numbers are estimates, so that a decision's reasons can say so too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache

from numakin.placement.model.errors import BadQuantity

LEAST_SHARES = 2
"""The kernel's and the kubelet's smallest cpu.shares: what a container without a CPU request gets."""

SHARES_PER_CPU = 1024
"""cpu.shares of one whole CPU (kubelet, MilliCPUToShares)."""

LARGEST_SHARES = 262_144
"""The kernel's and the kubelet's largest: of a request of 256 CPUs or any more."""

HUGEPAGES = "hugepages-"

UNKNOWN_LIMIT = frozenset({"memory limit"})
"""Among the estimated numbers of a pod of which not every container is known to have a memory limit."""

_SUFFIXES: Mapping[str, Decimal] = {
    **{
        name: Decimal(10) ** (3 * power)
        for power, name in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), start=-3)
    },
    **{name: Decimal(1024) ** power for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)},
}
_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]{1,19}(?:\.[0-9]{0,19})?|\.[0-9]{1,19}))(?:[eE]([+-]?[0-9]{1,2})|([numkMGTPE]|[KMGTPE]i)?)"
)

ESTIMATED = frozenset({"cpu", "memory"})
"""What is estimated where only a cgroup's settings are known."""

LARGEST_QUANTITY = 2**63 - 1
"""Kubernetes' own bound of a quantity; also of its milli-value here."""

MOST_CPUS = 1_000_000
"""Whole CPUs of a container's own that are counted: over any node's."""


@dataclass(frozen=True, slots=True)
class Demand:
    """CPU in millicores, memory and hugepages (by page size) in bytes.

    `memory_limit` None means that there is no limit. `estimated` names the numbers that were derived, not given.
    `used_milli`: of a whole pod, what its workload's pods use, learned (`numakin.placement.traffic.cpu_use`); 0: not
    known. The request is what is promised, and what must fit; the larger of both is what is expected.
    """

    cpu_milli: int = 0
    memory: int = 0
    memory_limit: int | None = 0
    hugepages: Mapping[int, int] = field(default_factory=dict, hash=False)
    estimated: frozenset[str] = frozenset()
    used_milli: int = 0

    def __post_init__(self) -> None:
        """What several ask for together may be over Kubernetes' own bound, and over what a report can say."""
        if max(self.cpu_milli, self.memory, self.memory_limit or 0, self.used_milli) > LARGEST_QUANTITY:
            for name in ("cpu_milli", "memory", "memory_limit", "used_milli"):
                amount = getattr(self, name)
                object.__setattr__(self, name, None if amount is None else bounded(amount))

    def __add__(self, other: Demand) -> Demand:
        return Demand(
            cpu_milli=self.cpu_milli + other.cpu_milli,
            memory=self.memory + other.memory,
            memory_limit=_unless_none(self.memory_limit, other.memory_limit, int.__add__),
            hugepages=_summed(self.hugepages, other.hugepages),
            estimated=self.estimated | other.estimated,
            used_milli=self.expected_milli + other.expected_milli if self.used_milli or other.used_milli else 0,
        )

    def times(self, count: int) -> Demand:
        """Of so many that ask for the same."""
        return Demand(
            cpu_milli=count * self.cpu_milli,
            memory=count * self.memory,
            memory_limit=None if self.memory_limit is None else count * self.memory_limit,
            hugepages={size: bounded(count * amount) for size, amount in self.hugepages.items()},
            estimated=self.estimated,
            used_milli=count * self.expected_milli if self.used_milli else 0,
        )

    @property
    def expected_milli(self) -> int:
        """Millicores that it is expected to take."""
        return max(self.cpu_milli, self.used_milli)

    @property
    def promised(self) -> Demand:
        """Without what is learned: what was asked for."""
        return replace(self, used_milli=0) if self.used_milli else self

    @property
    def whole_cpus(self) -> int:
        """The CPUs to own when they are to be exclusive: the request, rounded up, at least one."""
        return max(1, -(-self.cpu_milli // 1000))


@dataclass(frozen=True, slots=True)
class PodBudget:
    """A pod's own CPU budget (`spec.resources`, pod-level resources), which its containers share.

    cpus: the pod's CPU request, in whole CPUs, rounded up. slices: by name those containers that ask for whole CPUs
    by themselves, request and limit alike, and how many; the others share the rest, as the kubelet has it for exclusive
    CPUs (KEP-5526).
    """

    cpus: int
    slices: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, cpu_milli: int, slices: dict[str, int]) -> PodBudget:
        """A slice as large as the whole budget is none: that container shares it with those that ask for nothing."""
        cpus = max(1, -(-cpu_milli // 1000))
        return cls(cpus, tuple(sorted((name, size) for name, size in slices.items() if 0 < size < cpus)))

    def slice_of(self, container: str) -> int:
        """CPUs that the container of this name has for itself; 0: it shares what the others leave."""
        return dict(self.slices).get(container, 0)


@lru_cache(maxsize=1024)
def counted(asked: Demand, used_milli: int) -> Demand:
    """A pod's demand, with what its workload's pods use where that is more than the request. One value for all
    replicas.
    """
    used = used_milli if used_milli > asked.cpu_milli else 0
    return asked if used == asked.used_milli else replace(asked, used_milli=used)


def quantity(text: str) -> Decimal:
    """A Kubernetes resource quantity (`500m`, `1Gi`, `1e3`) as a number."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise BadQuantity(f"{text[:40]!r} is not a resource quantity")
    number, exponent, suffix = match.groups()
    scale = Decimal(10) ** int(exponent) if exponent else _SUFFIXES[suffix or ""]
    return Decimal(number) * scale


def from_resources(requests: Mapping[str, str], limits: Mapping[str, str]) -> Demand:
    """A container's demand from its spec; a limit without a request is the request too, as the API server has it. A
    memory limit of 0 is none, as the kubelet has it.
    """
    resources = {**limits, **requests}
    return Demand(
        cpu_milli=_rounded_up(quantity(resources.get("cpu", "0")) * 1000),
        memory=_rounded_up(quantity(resources.get("memory", "0"))),
        memory_limit=_rounded_up(quantity(limits.get("memory", "0"))) or None,
        hugepages={
            _rounded_up(quantity(name.removeprefix(HUGEPAGES))): _rounded_up(quantity(amount))
            for name, amount in resources.items()
            if name.startswith(HUGEPAGES)
        },
    )


def from_cgroup(
    *,
    shares: int | None,
    quota: int | None,
    period: int | None,
    memory_limit: int | None,
    hugepages: Mapping[int, int] = {},
) -> Demand:
    """An estimate from what the runtime receives: the CPU request from shares, or from the limit where there are none
    or no larger ones; the memory request from the limit.

    shares: cpu.shares; quota, period: microseconds; memory_limit: bytes. None or non-positive means not set.
    hugepages: limits in bytes by page size; Kubernetes has their requests equal to them, so that nothing is estimated.
    """
    cpu_milli = cpu_of(shares or 0)
    if (not shares or shares >= LARGEST_SHARES) and quota and period and quota > 0 and period > 0:
        cpu_milli = max(cpu_milli, -(-quota * 1000 // period))
    limit = memory_limit if memory_limit and memory_limit > 0 else None
    return Demand(cpu_milli, limit or 0, limit, dict(hugepages), estimated=ESTIMATED)


def shares_of(cpu_milli: int) -> int:
    """The cpu.shares that the kubelet gives to a container with this request (MilliCPUToShares)."""
    return min(LARGEST_SHARES, max(LEAST_SHARES, cpu_milli * SHARES_PER_CPU // 1000))


def cpu_of(shares: int) -> int:
    """The CPU request in millicores: `shares_of` rounds down, so that 100m becomes 102; rounding up gives it back."""
    return -(-shares * 1000 // SHARES_PER_CPU) if shares > LEAST_SHARES else 0


def resized(reported: Demand, *, shares: int | None, memory_limit: int | None) -> Demand:
    """What was reported of a container, updated by its cgroup's settings of now: they change with an in-place resize.
    None: not known; a memory limit of 0 or less: none.

    The memory request is in no setting: it stays, below the limit, or equal to it where it was.
    """
    limit = reported.memory_limit if memory_limit is None else memory_limit if memory_limit > 0 else None
    cpu_changed = shares is not None and shares != shares_of(reported.cpu_milli)
    if not cpu_changed and limit == reported.memory_limit:
        return reported
    memory = reported.memory
    if limit is not None and (memory > limit or memory == reported.memory_limit):
        memory = limit
    derived = {"cpu"} if cpu_changed else set()
    return replace(
        reported,
        cpu_milli=cpu_of(shares) if cpu_changed and shares is not None else reported.cpu_milli,
        memory=memory,
        memory_limit=limit,
        estimated=reported.estimated | derived | ({"memory"} if limit != reported.memory_limit else set()),
    )


def of_pod(
    containers: Iterable[Demand],
    init_containers: Iterable[tuple[Demand, bool]] = (),
    overhead: Demand = Demand(),
) -> Demand:
    """A pod's effective demand: its containers and sidecars together, or the largest moment of its start.

    init_containers: in order, each with whether it is restartable (a sidecar), as the scheduler counts them (KEP-753).
    overhead: of the pod's RuntimeClass.
    """
    total = Demand()
    for container in containers:
        total += container
    sidecars = peak = Demand()
    for init, restartable in init_containers:
        if restartable:
            sidecars += init
        peak = larger(peak, sidecars if restartable else sidecars + init)
    return larger(total + sidecars, peak) + overhead


def own_resources(summed: Demand, requests: Mapping[str, str], limits: Mapping[str, str]) -> Demand:
    """A pod's demand where its spec has resources of its own (KEP-2837): what these name goes before its containers'
    sum. Of a limit without a request the request is that sum or, where no container asks for any, the limit, as the
    API server has it.
    """
    own = from_resources(requests, limits)
    return replace(
        summed,
        cpu_milli=own.cpu_milli if "cpu" in requests else summed.cpu_milli or own.cpu_milli,
        memory=own.memory if "memory" in requests else summed.memory or own.memory,
        memory_limit=own.memory_limit if "memory" in limits else summed.memory_limit,
        hugepages={**summed.hugepages, **own.hugepages},
    )


def whole_cpus_of(requests: Mapping[str, str], limits: Mapping[str, str]) -> int:
    """The CPUs of a container that asks for whole ones, with a limit of as many; 0: it does not."""
    if "cpu" not in limits:
        return 0
    limit = quantity(limits["cpu"])
    whole = limit == quantity(requests.get("cpu", limits["cpu"])) == limit.to_integral_value()
    return min(MOST_CPUS, int(limit)) if whole else 0


def bounded(amount: int) -> int:
    """What several ask for together, at most the largest quantity."""
    return min(LARGEST_QUANTITY, amount)


def larger(a: Demand, b: Demand) -> Demand:
    """The larger of each number."""
    return replace(
        a,
        cpu_milli=max(a.cpu_milli, b.cpu_milli),
        memory=max(a.memory, b.memory),
        memory_limit=_unless_none(a.memory_limit, b.memory_limit, max),
        hugepages={
            size: max(a.hugepages.get(size, 0), b.hugepages.get(size, 0)) for size in {*a.hugepages, *b.hugepages}
        },
        estimated=a.estimated | b.estimated,
        used_milli=max(a.used_milli, b.used_milli),
    )


def less(whole: Demand, part: Demand) -> Demand:
    """What is left of it beside a part that is counted by itself."""
    return replace(
        whole,
        cpu_milli=max(0, whole.cpu_milli - part.cpu_milli),
        memory=max(0, whole.memory - part.memory),
        memory_limit=None if whole.memory_limit is None else max(0, whole.memory_limit - (part.memory_limit or 0)),
        hugepages={size: max(0, amount - part.hugepages.get(size, 0)) for size, amount in whole.hugepages.items()},
        used_milli=max(0, whole.used_milli - part.expected_milli),
    )


def _unless_none(a: int | None, b: int | None, combine: Callable[[int, int], int]) -> int | None:
    return None if a is None or b is None else combine(a, b)


def _summed(a: Mapping[int, int], b: Mapping[int, int]) -> Mapping[int, int]:
    return {size: bounded(a.get(size, 0) + b.get(size, 0)) for size in {*a, *b}}


def _rounded_up(number: Decimal) -> int:
    """Never negative: a negative request is refused by the API server, and counts as none here."""
    if number > LARGEST_QUANTITY:
        raise BadQuantity(f"{number:.3e} is over the largest quantity, {LARGEST_QUANTITY}")
    return max(0, int(number.to_integral_value(rounding="ROUND_CEILING")))
