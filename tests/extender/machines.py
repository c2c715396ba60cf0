"""Clusters to score on: nodes of any shape with any occupancy, and pods that ask for anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from extender.scoring.predict import Wanted, wanted
from extender.state.node_view import NodeView
from extender.state.pods import ContainerRow, PodRow
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.live_usage import Live
from numakin.placement.model.node_terms import Taint
from numakin.placement.model.rules import Rules
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.optin.quotas import UNLIMITED, Quota
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation

GIB = 1 << 30

TAINTED = (Taint("dedicated", "other", "NoSchedule"),)


def pod(
    uid: str = "new",
    *,
    group: str = "shop",
    cpu: str = "500m",
    memory: str = "1Gi",
    node: str = "",
    beside: tuple[ContainerRow, ...] = (),
    own: str = "",
    **keys: str,
) -> PodRow:
    """beside: containers before its own. own: CPU of the pod's own (pod-level resources). keys: further annotations, `policy="restricted"` for policy.numakin.io."""
    annotations = {"group.numakin.io": group} if group else {}
    return PodRow(
        uid=uid,
        namespace="default",
        name=uid,
        node=node,
        annotations={**annotations, **{_key(key): value for key, value in keys.items()}},
        containers=(*beside, ContainerRow("main", {"cpu": cpu, "memory": memory}, {"memory": memory})),
        requests={"cpu": own} if own else {},
        limits={"cpu": own} if own else {},
    )


def _key(name: str) -> str:
    """`cpus_of_main` is cpus.numakin.io/container.main."""
    key, _, container = name.partition("_of_")
    return f"{key}.numakin.io/container.{container}" if container else f"{key}.numakin.io"


def want(*arguments: str, quota: Quota = UNLIMITED, used_milli: int = 0, **keys: str) -> Wanted:
    """quota: its namespace's. used_milli: what pods of its workload use."""
    ready = wanted(pod(*arguments, **keys), quota=quota, used_milli=used_milli)
    assert ready is not None
    return ready


def picked(draw: st.DrawFn, *options: Sequence[Any]) -> list[Any]:
    """One of each, drawn together as one number: a draw for each of a cluster's facts takes longer than all else."""
    number, chosen = draw(st.integers(0, math.prod(map(len, options)) - 1)), []
    for each in options:
        number, at = divmod(number, len(each))
        chosen.append(each[at])
    return chosen


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """One to five NUMA nodes or eleven, some without CPUs, some without memory, any distances, cores of one to four CPUs,
    some CPUs isolated, some memory withheld.
    """
    count, size = picked(draw, [1, 2, 3, 4, 5, 11], [1, 2, 4])
    cpus = picked(draw, *[[0, 1, 2, 4, 6]] * count)
    if not any(cpus):
        cpus[-1] = 2
    memory = picked(draw, *[[0, 1, 4, 16]] * count)
    far = iter(picked(draw, *[[11, 20, 32]] * (count * (count - 1) // 2)))
    distances = {number: {number: 10} for number in range(count)}
    for a in range(count):
        for b in range(a):
            distances[a][b] = distances[b][a] = next(far)
    total, nodes, first = sum(cpus), [], 0
    none_or = [None, *range(total)] if total > 2 else [None]
    isolated = CpuSet.of({cpu for cpu in picked(draw, none_or, none_or) if cpu is not None})
    withheld = picked(draw, *[[None, *range(count)]] * 2)
    for number in range(count):
        here = CpuSet.of(range(first, first + cpus[number]))
        nodes.append(
            NumaNode(
                number,
                here - isolated,
                memory[number] * GIB,
                distances[number],
                isolated=here & isolated,
                withheld=number in withheld,
            )
        )
        first += cpus[number]
    return Machine(
        tuple(nodes), cores=tuple(CpuSet.of(range(at, min(first, at + size))) for at in range(0, first, size))
    )


DEMANDS = ([0, 500, 1500], [0, GIB], [0, 0, 0, 2500, 7000])
"""Of CPU, of memory, and what is used of CPU."""

KINDS = ["own", "own", "pool", "pool", "pool", "none", "none", "open", "stable"]


@st.composite
def views(draw: st.DrawFn, name: str = "n") -> NodeView:
    machine = draw(machines())
    ids = [numa_node.id for numa_node in machine.numa_nodes]
    reservations = {}
    for at in range(draw(st.integers(0, 6))):
        key = f"{name}-{at}"
        one, other, group, milli, memory, used, size = picked(
            draw, ids, [None, *ids], ["default/shop", "default/other", ""], *DEMANDS, [0, 0, 0, 1, 5]
        )
        homes = NumaSet.of({one, one if other is None else other})
        demand = Demand(milli, memory, used_milli=used)
        reservations[key] = Reservation(key, key, group, homes, demand, size=size)
    allocations, free = {}, machine.cpus
    for key, reservation in reservations.items():
        here = machine.cpus_of(reservation.numa_nodes & machine.cpu_nodes)
        kind, *cpus = picked(draw, KINDS, *[[None, *here & free]] * 2)
        own = CpuSet.of({cpu for cpu in cpus if cpu is not None})
        if kind == "own" and own:
            free -= own
            allocations[f"{key}/c"] = Allocation(
                f"{key}/c", "main", key, key, own, exclusive=own, rounded_up=500 * (own.lowest % 2)
            )
        elif kind == "open" and free:
            allocations[f"{key}/c"] = Allocation(f"{key}/c", "main", key, key, free, open=True)
        elif kind == "stable" and (part := here & free):
            free -= part
            allocations[f"{key}/c"] = Allocation(f"{key}/c", "main", key, key, part, stable=True)
        elif kind == "pool" and here:
            allocations[f"{key}/c"] = Allocation(f"{key}/c", "main", key, key, here)
    reserved, most = picked(draw, [CpuSet(), CpuSet.of((0,))], [None, None, 0, 2, 4])
    occupancy = Occupancy(
        reservations=reservations,
        allocations=allocations,
        live=_live(draw, machine),
        reserved=reserved,
        rules=Rules(max_exclusive_cpus_per_namespace=most),
    )
    return NodeView(name, "s", "1", machine, occupancy)


def _live(draw: st.DrawFn, machine: Machine) -> Live:
    """Something of up to two NUMA nodes for each figure."""

    def of_some(values: Sequence[Any], most: int = 2) -> dict[int, Any]:
        ids = [None, *(numa_node.id for numa_node in machine.numa_nodes)]
        chosen = picked(draw, *[ids, values] * most)
        return {at: value for at, value in zip(chosen[::2], chosen[1::2], strict=True) if at is not None}

    return Live(
        free_memory=of_some([0, GIB, 8 * GIB]),
        used_cpu=of_some([0, 900]),
        stalled=of_some([0.0, 0.0, 0.0, 0.5], 1),
        hot={machine.node(at).cpus.mask: hot for at, hot in of_some([False, True]).items()},
    )
