"""What a simulation found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil

from benchmarks.cluster.nodes.node import Landing


@dataclass(frozen=True, slots=True)
class Nominations:
    """How many pods' nominations were kept, declined, not there when the container was created, or empty: bound without
    a NUMA node being nominated. failed: the enforcer raised an error, and the container was left as it was.
    """

    kept: int = 0
    declined: int = 0
    late: int = 0
    empty: int = 0
    failed: int = 0


def nominations(landings: Iterable[Landing]) -> Nominations:
    rows = list(landings)
    return Nominations(
        kept=sum(row.outcome == "kept" for row in rows),
        declined=sum(row.outcome == "declined" for row in rows),
        late=sum(row.outcome == "unpromised" and row.waited is None for row in rows),
        empty=sum(row.outcome == "unpromised" and row.waited is not None for row in rows),
        failed=sum(row.outcome == "failed" for row in rows),
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """One scenario. locality: 0 to 1, of the pods that it is about; share: that, of the best known for them; hidden:
    pods whose group's nodes kube-scheduler had not offered; placements: a digest of all that runs after it; remark:
    what only this scenario reports.
    """

    scenario: str
    pods: int
    seconds: float
    locality: float
    share: float
    nominations: Nominations
    hidden: int = 0
    over_commitments: int = 0
    placements: str = ""
    remark: str = ""
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Latency:
    """Of one verb for one number of offered nodes, in seconds. lost: answers that kube-scheduler would not have waited
    for.
    """

    verb: str
    offered: int
    calls: int
    p50: float
    p99: float
    lost: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """A whole simulation. cpu_s, peak_rss (bytes): of the extender; idle_share: of a CPU, when nothing
    happens; nominated_p50, nominated_p99: seconds from a binding to its nomination on the node; missing: what could not
    be shown, and why; errors: of the extender's answers and of enforcers.
    """

    nodes: int
    seed: int
    percentage: int
    findings: tuple[Finding, ...]
    latencies: tuple[Latency, ...]
    cpu_s: float
    idle_share: float | None
    peak_rss: int
    nominated_p50: float
    nominated_p99: float
    seconds: float
    missing: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def over_commitments(self) -> int:
        return max((finding.over_commitments for finding in self.findings), default=0)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0.0
