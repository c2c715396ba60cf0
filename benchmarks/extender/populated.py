"""A cluster as the extender would know it: machines of three kinds, each with pods."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from sys import intern

from extender.cluster import Cluster
from extender.state.node_report import Report
from extender.state.node_view import NodeView
from extender.state.pods import Changes, ContainerRow, PodRow
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.state.occupancy import Occupancy, Reservation, fingerprint

GIB = 1 << 30
PODS_PER_NODE = 60


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


def populated(nodes: int, clock: Callable[[], float] = time.monotonic) -> Cluster:
    """60 pods on each node; on every seventh some are of the group default/shop. Names are as a session has them."""
    cluster = Cluster(clock=clock)
    machines = [machine(kind) for kind in range(3)]
    for at in range(nodes):
        of, name = machines[at % 3], intern(f"node-{at:05}")
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


def wait(cluster: Cluster, group: str, count: int) -> None:
    """So many pods of a group are there, without a node."""
    main = ContainerRow("main", {"cpu": "500m", "memory": "1Gi"})
    rows = (
        PodRow(uid, "default", uid, annotations={"group.numakin.io": group}, containers=(main,))
        for uid in (f"{group}-{at}" for at in range(count))
    )
    cluster.apply_pods(Changes(rows=tuple(rows)))


def body(uid: str, nodes: int, **annotations: str) -> bytes:
    """As kube-scheduler asks about a pod. annotations: `group="shop"` for group.numakin.io. Where it asks for exclusive
    CPUs it requests two: less than one would share.
    """
    requests = {"cpu": "2" if "cpus" in annotations else "500m", "memory": "1Gi"}
    pod = {
        "metadata": {
            "name": uid,
            "namespace": "default",
            "uid": uid,
            "annotations": {f"{key}.numakin.io": value for key, value in annotations.items()},
        },
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]},
    }
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": [f"node-{at:05}" for at in range(nodes)]}).encode()
