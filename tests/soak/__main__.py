"""python -m tests.soak (make soak): rounds until so many processes were killed, or so many minutes are over."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from lab.standins.extender import ExtenderGone
from tests.e2e.lab.runtimes import installations
from tests.soak import report
from tests.soak.cluster import Cluster
from tests.soak.containerd_node import ContainerdNode
from tests.soak.faults import FAULTS, LEFT_OUT
from tests.soak.nodes import EmbeddedNode
from tests.soak.processes import NotSettled
from tests.soak.rounds import Soak


def main() -> int:
    given = _arguments()
    faults = {name: row for name, row in FAULTS.items() if given.only in name}
    for name, why in LEFT_OUT.items():
        print(f"left out: {name}: {why}", flush=True)
    if not faults:
        print(f"no fault has {given.only!r} in its name", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()
    over = began + given.minutes * 60 if given.minutes else float("inf")
    folder = Path(tempfile.mkdtemp(prefix="numakin-soak-"))
    print(f"logs are in {folder}", flush=True)
    with _cluster(folder, given.runtime) as cluster:
        soak = Soak(cluster, given.seed, faults, lambda line: print(line, flush=True))
        soak.settle()
        try:
            while cluster.killed < given.kills and time.monotonic() < over:
                soak.round()
                if soak.tally.rounds % 20 == 0:
                    print(report.summary(soak.tally, cluster.killed, time.monotonic() - began), flush=True)
        except (NotSettled, ExtenderGone) as error:
            print(f"given up: {error}", file=sys.stderr)
        except KeyboardInterrupt:
            print("asked to end", file=sys.stderr)
        packets = report.packets(cluster.links)
    for broken in soak.growth.broken():
        soak.tally.broken.append(((), broken))
    text = f"{report.summary(soak.tally, cluster.killed, time.monotonic() - began)}\n\n{report.table(soak.tally, soak.growth.trends())}\n{packets}"
    print(text)
    if given.report:
        given.report.write_text(text)
    return 1 if soak.tally.broken else 0


def _cluster(folder: Path, runtime: str) -> Cluster:
    if runtime:
        return Cluster(folder, partial(ContainerdNode, runtime=runtime), ("n1",))
    return Cluster(folder, EmbeddedNode, ("n1", "n2"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak ARGS=", description=__doc__)
    parser.add_argument(
        "--kills", type=int, default=1000, help="ends after so many processes were killed (default: 1000)"
    )
    parser.add_argument("--minutes", type=float, default=0, help="ends after so long; 0: only by --kills (default)")
    parser.add_argument("--seed", type=int, default=0, help="draws the faults and the pods (default: 0)")
    names = [each.name for each in installations()]
    parser.add_argument("--runtime", choices=names, default="", help="one node with this real container runtime")
    parser.add_argument("--only", default="", help="faults with this in their name, as in the report (default: all)")
    parser.add_argument("--report", type=Path, help="also writes the table to this file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
