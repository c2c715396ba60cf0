"""How long kube-scheduler waits for the extender, by number of offered nodes.

    python -m benchmarks.extender                       500, 1,000 and 5,000 nodes
    python -m benchmarks.extender --nodes 500 --json    for a program

kube-scheduler sends one pod at a time, so each millisecond here is one for every pod of the cluster. `steady` scores
one pod again and again; `burst` scores many, each of which holds its room from then on; `exclusive CPUs` requests
exclusive ones. Nodes carry 60 pods each, every seventh some of one group. Machines have two sockets, four NUMA nodes
all alike, or four in a chain, in turn.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import time
from collections.abc import Callable

import structlog

from extender.cluster import Cluster
from extender.scheduler.metrics import Metrics
from extender.scheduler.verbs import Verbs
from extender.serving.application import calm_collector
from extender.state.node_view import NodeView, Report
from placement.model.cpuset import CpuSet, NumaSet
from placement.model.demand import Demand
from placement.model.topology import Machine, NumaNode
from placement.state.occupancy import Occupancy, Reservation, fingerprint

GIB = 1 << 30
PODS_PER_NODE = 60
CALLS = 30
FAR: tuple[Callable[[int], int], ...] = (
    lambda hops: 11 * (hops > 0),
    lambda hops: 2 * (hops > 0),
    lambda hops: 8 * hops,
)


def machine(kind: int) -> Machine:
    """kind 0: 2 NUMA nodes of 64 CPUs; 1: 4 of 32, all alike; 2: 4 of 32 in a chain."""
    count, cpus = ((2, 64), (4, 32), (4, 32))[kind]
    return Machine(
        tuple(
            NumaNode(
                numa_node,
                CpuSet.of(range(numa_node * cpus, (numa_node + 1) * cpus)),
                512 // count * GIB,
                {
                    other: 10 + (11 * (other != numa_node), 2 * (other != numa_node), 8 * abs(other - numa_node))[kind]
                    for other in range(count)
                },
            )
            for numa_node in range(count)
        )
    )


def populated(nodes: int) -> Cluster:
    cluster = Cluster()
    machines = [machine(kind) for kind in range(3)]
    for at in range(nodes):
        of, name = machines[at % 3], f"node-{at:05}"
        count = len(of.numa_nodes)
        reservations = tuple(
            Reservation(
                f"{name}-{pod}",
                f"{name}-{pod}",
                "default/shop" if pod % 10 == 0 and at % 7 == 0 else f"default/other-{pod % 5}",
                NumaSet.of((pod % count,)),
                Demand(500 + 100 * (at % 5), GIB),
            )
            for pod in range(PODS_PER_NODE)
        )
        cluster.connected(name)
        report = Report(1, 0, fingerprint(reservations, ()), reservations)
        cluster.reported(NodeView(name, "session", "1", of, Occupancy().on(of)), report)
    return cluster


def body(uid: str, nodes: int, **annotations: str) -> bytes:
    pod = {
        "metadata": {
            "name": uid,
            "namespace": "default",
            "uid": uid,
            "annotations": {f"{key}.numakin.io": value for key, value in annotations.items()},
        },
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]},
    }
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": [f"node-{at:05}" for at in range(nodes)]}).encode()


def timed(calls: int, call: Callable[[int], object]) -> dict[str, float]:
    """Milliseconds of CPU, so that other load does not count; the first call fills the caches."""
    taken = []
    for at in range(calls + 1):
        begin = time.thread_time()
        call(at)
        taken.append(1000 * (time.thread_time() - begin))
    first, *rest = taken
    return {"first": first, "median": statistics.median(rest), "worst": max(rest)}


def measured(nodes: int) -> dict[str, dict[str, float]]:
    cluster = populated(nodes)
    verbs = Verbs(cluster, Metrics(), refuse=False)

    def burst(at: int) -> None:
        verbs.prioritize(body(f"burst-{at}", nodes, group="shop"))

    return {
        "not opted in": timed(CALLS, lambda at: verbs.prioritize(body(f"plain-{at}", nodes))),
        "steady": timed(CALLS, lambda _at: verbs.prioritize(body("steady", nodes, group="shop"))),
        "burst": timed(CALLS, burst),
        "exclusive CPUs": timed(
            5, lambda at: verbs.prioritize(body(f"own-{at}", nodes, group="shop", cpus="exclusive"))
        ),
    }


def main() -> None:
    calm_collector()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
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
