"""What many enforcers' report streams cost a real extender process while nothing happens but heartbeats.

    python -m benchmarks.extender.at_rest                     1,000 and 5,000 nodes
    python -m benchmarks.extender.at_rest --nodes 5000 --json

Each node has the enforcer's own agent, outbox and mirror (`benchmarks.cluster.nodes`), and sends a heartbeat every five
seconds, as an enforcer does.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from random import Random

from benchmarks.cluster.control.extender import MeasuredExtender, until
from benchmarks.cluster.nodes.fleet import Fleet, Terms
from benchmarks.cluster.nodes.population import population
from benchmarks.cluster.nodes.remote import Remote

WATCHED_S = 30.0


def measured(nodes: int) -> dict[str, float]:
    """cores: of the extender, at rest. arrival_cpu_s: of all nodes' first reports. peak_mib: RSS."""
    specs = population(nodes, Random(1))
    with tempfile.TemporaryDirectory(prefix="numakin-at-rest.") as name:
        extender = MeasuredExtender(Path(name), ("--no-kube",))
        extender.start()
        try:
            fleet = Remote(Fleet, specs, Terms(extender.grpc))
            try:
                fleet.call("dial")
                if silent := fleet.call("settled"):
                    raise RuntimeError(f"{len(silent)} enforcers have not reported, the first is {silent[0]}")
                until(lambda: extender.live() == nodes, "not every node is live")
                arrived, begin = extender.usage()[0], time.monotonic()
                time.sleep(WATCHED_S)
                cpu_s, peak = extender.usage()
                cores = (cpu_s - arrived) / (time.monotonic() - begin)
            finally:
                fleet.close()
        finally:
            extender.kill()
    return {"cores": cores, "arrival_cpu_s": arrived, "peak_mib": peak / (1 << 20)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extender.at_rest", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--json", action="store_true", help="for a program")
    options = parser.parse_args()
    results = {nodes: measured(nodes) for nodes in options.nodes}
    if options.json:
        print(json.dumps(results))
        return
    for nodes, row in results.items():
        print(f"{nodes:>6} nodes: " + ", ".join(f"{name} {value:.2f}" for name, value in row.items()))


if __name__ == "__main__":
    main()
