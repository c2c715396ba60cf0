"""How long kube-scheduler waits for the extender, by number of offered nodes.

    python -m benchmarks.extender                       500, 1,000 and 5,000 nodes
    python -m benchmarks.extender --nodes 500 --json    for a program

kube-scheduler sends one pod at a time, so each millisecond here is one for every pod of the cluster. `steady` scores
one pod again and again; `burst` scores many, each of which holds its room from then on; `exclusive CPUs` requests
exclusive ones; `held` is a burst of a group whose pods wait, with room held for it. Nodes carry 60 pods each, every
seventh some of one group. Machines have two sockets, four NUMA nodes all alike, or four in a chain, in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from functools import partial

from benchmarks.extender.populated import body, populated, wait
from extender.scheduler.calls import SchedulerCall, SchedulerCalls
from extender.scheduler.metrics import Metrics
from extender.scheduler.verbs import Verbs
from extender.serving.application import calm_collector
from numakin.process.log import to_stderr

CALLS = 30


def timed(call: SchedulerCall, requests: list[bytes]) -> dict[str, float]:
    """Milliseconds of CPU, so that other load does not count; the first call fills the caches."""
    taken = []
    for request in requests:
        begin = time.thread_time()
        answer = call(request)
        taken.append(1000 * (time.thread_time() - begin))
        if answer.after is not None:
            answer.after()
        assert answer.status == 200, answer.body
    first, *rest = taken
    return {"first": first, "median": statistics.median(rest), "worst": max(rest)}


def measured(nodes: int) -> dict[str, dict[str, float]]:
    """As the extender answers behind its port: of a pod that has not opted in nothing is decoded."""
    metrics, cluster = Metrics(), populated(nodes)
    call = SchedulerCalls(partial(Verbs, cluster, metrics, refuse=False), metrics)()["prioritize"]
    numbers = range(CALLS + 1)
    rows = {
        "not opted in": timed(call, [body(f"plain-{at}", nodes) for at in numbers]),
        "steady": timed(call, [body("steady", nodes, group="shop")] * len(numbers)),
        "burst": timed(call, [body(f"burst-{at}", nodes, group="shop") for at in numbers]),
        "exclusive CPUs": timed(call, [body(f"own-{at}", nodes, group="shop", cpus="exclusive") for at in numbers]),
    }
    wait(cluster, "group", len(numbers))
    cluster.reserve()
    return rows | {"held": timed(call, [body(f"group-{at}", nodes, group="group") for at in numbers])}


def main() -> None:
    calm_collector()
    to_stderr("warning", "text")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extender", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 1000, 5000], help="nodes offered in one call")
    parser.add_argument("--json", action="store_true", help="for a program")
    options = parser.parse_args()
    results = {nodes: measured(nodes) for nodes in options.nodes}
    if options.json:
        print(json.dumps(results))
        return
    print(f"{'nodes':>6}  {'pod':<13} {'first ms':>9} {'median ms':>10} {'worst ms':>9}")
    for nodes, rows in results.items():
        for name, row in rows.items():
            print(f"{nodes:>6}  {name:<13} {row['first']:>9.1f} {row['median']:>10.1f} {row['worst']:>9.1f}")


if __name__ == "__main__":
    main()
