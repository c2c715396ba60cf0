"""`make simulate`: a simulated cluster under load, with what it shows of the extender.

examples:
  python -m benchmarks.cluster                           10 nodes, then 100
  python -m benchmarks.cluster --nodes 1000              kube-scheduler offers 420 of them
  python -m benchmarks.cluster --nodes 1000 --percentage-of-nodes-to-score 100
  python -m benchmarks.cluster --nodes 10 --json         for machines
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from benchmarks.cluster import show
from benchmarks.cluster.control.extender import ExtenderGone
from benchmarks.cluster.driver import Plan
from benchmarks.cluster.scenarios import SCENARIOS, steady
from benchmarks.cluster.simulation import simulated


def main() -> int:
    options = _options()
    # Ends like Ctrl-C does, so that no process of the simulation is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console(stderr=options.json, width=max(show.WIDTH, Console().width))
    outcomes = []
    chosen = {steady.__name__, *(options.scenario or [each.__name__ for each in SCENARIOS])}
    scenarios = [each for each in SCENARIOS if each.__name__ in chosen]
    for nodes in options.nodes or [10, 100]:
        plan = Plan(
            nodes=nodes,
            seed=options.seed,
            percentage=options.percentage_of_nodes_to_score,
            burst=options.burst,
            lockstep=options.lockstep,
            together=options.together,
        )
        with tempfile.TemporaryDirectory(prefix="numakin-simulate.") as folder:
            try:
                outcome = simulated(Path(folder), plan, lambda text: console.print(f"[dim]{text}"), scenarios)
            except ExtenderGone as gone:
                console.print(f"numakin simulate: {gone}", (Path(folder) / "extender.log").read_text()[-2000:])
                return 1
        show.outcome(console, outcome)
        outcomes.append(outcome)
    if options.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes]))
    return 1 if any(outcome.over_commitments or outcome.errors for outcome in outcomes) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make simulate ARGS=...", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, action="append", help="may be given several times (default: 10 and 100)")
    parser.add_argument("--seed", type=int, default=1, help="other machines, pods and orders (default: 1)")
    parser.add_argument("--burst", type=int, default=200, help="members that come at once (default: 200)")
    parser.add_argument(
        "--percentage-of-nodes-to-score", type=int, default=0, help="as kube-scheduler's (default: 0, its own choice)"
    )
    parser.add_argument(
        "--lockstep",
        action="store_true",
        help="bind a burst's next member only once the one before is nominated: the same placements in every run",
    )
    parser.add_argument(
        "--together",
        action="store_true",
        help="the first applications' pods are all created before the first is scheduled, not one after the other",
    )
    parser.add_argument(
        "--scenario",
        action="append",
        choices=[each.__name__ for each in SCENARIOS],
        help="only this one, after steady, which most follow; may be given several times (default: all)",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON on stdout")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
