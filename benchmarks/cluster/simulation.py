"""One simulation: a cluster of one size, all scenarios, and what they cost the extender."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.cluster.driver import Cluster, Plan
from benchmarks.cluster.result import Finding, Latency, Outcome, percentile
from benchmarks.cluster.scenarios import SCENARIOS

IDLE_S = 10.0
"""How long the extender's idle cost is watched, in clusters where it is worth knowing."""

IDLE_FROM = 1000

HTTP_TIMEOUT_S = 1.0
"""As scheduler-config/kube-scheduler-config.yaml has it."""


def simulated(
    folder: Path,
    plan: Plan,
    progress: Callable[[str], None],
    scenarios: Sequence[Callable[[Cluster], Finding]] = SCENARIOS,
) -> Outcome:
    """folder: for logs and the kubeconfig. progress: receives a line after each step."""
    begin = time.monotonic()
    with Cluster(folder, plan) as cluster:
        progress(f"{plan.nodes} nodes are up after {time.monotonic() - begin:.1f} s")
        findings: list[Finding] = []
        for scenario in scenarios:
            findings.append(scenario(cluster))
            progress(f"{findings[-1].scenario}: {findings[-1].seconds:.1f} s")
        cpu_s, peak_rss = cluster.extender.usage()
        idle = _idle_share(cluster) if plan.nodes >= IDLE_FROM else None
        waits = [landing.waited for landing in cluster.landings if landing.waited is not None]
        return Outcome(
            nodes=plan.nodes,
            seed=plan.seed,
            percentage=plan.percentage,
            findings=tuple(findings),
            latencies=tuple(_latencies(cluster)),
            cpu_s=cpu_s,
            idle_share=idle,
            peak_rss=peak_rss,
            nominated_p50=percentile(waits, 0.5),
            nominated_p99=percentile(waits, 0.99),
            seconds=time.monotonic() - begin,
            errors=(*cluster.client.errors, *cluster.fleet.call("errors")),
            missing=tuple(cluster.missing),
        )


def _idle_share(cluster: Cluster) -> float:
    before, begin = cluster.extender.usage()[0], time.monotonic()
    time.sleep(IDLE_S)
    return (cluster.extender.usage()[0] - before) / (time.monotonic() - begin)


def _latencies(cluster: Cluster) -> list[Latency]:
    return [
        Latency(
            verb,
            offered,
            len(values),
            percentile(values, 0.5),
            percentile(values, 0.99),
            sum(value > HTTP_TIMEOUT_S for value in values),
        )
        for (verb, offered), values in sorted(cluster.client.seconds.items())
    ]
