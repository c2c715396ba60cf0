"""`python -m benchmarks.scheduler`: what numakin costs and brings on a real kube-scheduler.

Each way in turn, round after round, so that what else the machine does is shared by all: medians, and the median and
the quartiles of each way's rate beside that of an extender that does nothing, with the same sampling, in the same
round; and the extender's processor time for each pod. Needs Kubernetes' programs (tools/setup/kubernetes, or
KUBERNETES_BIN).
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Sequence

from benchmarks.scheduler.bursts import Bench, Burst, Way


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scheduler", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=500, help="(default: 500)")
    parser.add_argument("--pods", type=int, default=200, help="of one burst, in groups of ten (default: 200)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: 5)")
    options = parser.parse_args()
    bursts: dict[Way, list[Burst]] = defaultdict(list)
    with Bench(options.nodes) as bench:
        for _ in range(options.rounds):
            for way in bench.ways:
                bursts[way].append(bench.burst(way, options.pods))
        splits = bench.metric("numakin_extender_group_splits_total")
    print(
        f"{options.nodes} nodes, bursts of {options.pods} pods, {options.rounds} rounds; groups split though a node had"
    )
    print(f"room, as the extender counts them: {splits:.0f}")
    print(f"{'':46} {'pods/s':>7} {'beside no-op':>18} {'CPU ms/pod':>11} {'groups whole':>13}")
    for way, rounds in bursts.items():
        rate = statistics.median(burst.pods_per_s for burst in rounds)
        cpu = f"{statistics.median(burst.cpu_ms for burst in rounds):.2f}" if way.extender == "numakin" else ""
        whole, groups = sum(burst.whole for burst in rounds), sum(burst.groups for burst in rounds)
        beside = _quartiles(
            [own.pods_per_s / noop.pods_per_s for own, noop in zip(rounds, bursts[way.floor], strict=True)]
        )
        print(f"{way!s:46} {rate:>7.0f} {beside:>18} {cpu:>11} {f'{whole} of {groups}':>13}")


def _quartiles(ratios: Sequence[float]) -> str:
    """The median and, of at least two, the quartiles."""
    if len(ratios) < 2:
        return f"{ratios[0]:.2f}"
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{median:.2f} [{low:.2f}-{high:.2f}]"


if __name__ == "__main__":
    main()
