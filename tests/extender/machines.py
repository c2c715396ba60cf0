"""Clusters to score on: nodes of any shape with any occupancy, and pods that ask for anything."""

from __future__ import annotations

from hypothesis import strategies as st

from extender.scoring.predict import Wanted, wanted
from extender.state.node_view import NodeView
from extender.state.pods import ContainerRow, PodRow
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.live_usage import Live
from numakin.placement.model.rules import Rules
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.optin.quotas import UNLIMITED, Quota
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation

GIB = 1 << 30


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


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """One to five NUMA nodes or eleven, some without CPUs, some without memory, any distances, cores of one to four CPUs,
    some CPUs isolated, some memory withheld.
    """
    count = draw(st.sampled_from([1, 2, 3, 4, 5, 11]))
    cpus = draw(st.lists(st.sampled_from([0, 1, 2, 4, 6]), min_size=count, max_size=count).filter(any))
    memory = draw(st.lists(st.sampled_from([0, 1, 4, 16]), min_size=count, max_size=count))
    distances = {number: {number: 10} for number in range(count)}
    for a in range(count):
        for b in range(a):
            distances[a][b] = distances[b][a] = draw(st.sampled_from([11, 20, 32]))
    nodes, first = [], 0
    isolated = CpuSet.of(draw(st.sets(st.integers(0, sum(cpus) - 1), max_size=2)) if sum(cpus) > 2 else ())
    withheld = draw(st.sets(st.integers(0, count - 1), max_size=2))
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
    size = draw(st.sampled_from([1, 2, 4]))
    return Machine(
        tuple(nodes), cores=tuple(CpuSet.of(range(at, min(first, at + size))) for at in range(0, first, size))
    )


@st.composite
def views(draw: st.DrawFn, name: str = "n") -> NodeView:
    machine = draw(machines())
    ids = [numa_node.id for numa_node in machine.numa_nodes]
    reservations = {}
    for at in range(draw(st.integers(0, 6))):
        key = f"{name}-{at}"
        homes = NumaSet.of(draw(st.sets(st.sampled_from(ids), min_size=1, max_size=2)))
        group = draw(st.sampled_from(["default/shop", "default/other", ""]))
        used = draw(st.sampled_from([0, 0, 0, 2500, 7000]))
        demand = Demand(draw(st.sampled_from([0, 500, 1500])), draw(st.sampled_from([0, GIB])), used_milli=used)
        size = draw(st.sampled_from([0, 0, 0, 1, 5]))
        reservations[key] = Reservation(key, key, group, homes, demand, size=size)
    allocations, free = {}, machine.cpus
    for key, reservation in reservations.items():
        here = machine.cpus_of(reservation.numa_nodes & machine.cpu_nodes)
        own = CpuSet.of(draw(st.sets(st.sampled_from([*here & free]), max_size=2))) if here & free else CpuSet()
        kind = draw(st.sampled_from(["own", "own", "pool", "pool", "pool", "none", "none", "open", "stable"]))
        if kind == "own" and own:
            free -= own
            allocations[f"{key}/c"] = Allocation(f"{key}/c", "main", key, key, own, exclusive=own)
        elif kind == "open" and free:
            allocations[f"{key}/c"] = Allocation(f"{key}/c", "main", key, key, free, open=True)
        elif kind == "stable" and (part := here & free):
            free -= part
            allocations[f"{key}/c"] = Allocation(f"{key}/c", "main", key, key, part, stable=True)
        elif kind == "pool" and here:
            allocations[f"{key}/c"] = Allocation(f"{key}/c", "main", key, key, here)
    chosen = st.sampled_from(ids)
    occupancy = Occupancy(
        reservations=reservations,
        allocations=allocations,
        live=Live(
            free_memory=draw(st.dictionaries(chosen, st.sampled_from([0, GIB, 8 * GIB]), max_size=2)),
            used_cpu=draw(st.dictionaries(chosen, st.sampled_from([0, 900]), max_size=2)),
            stalled=draw(st.dictionaries(chosen, st.sampled_from([0.0, 0.0, 0.0, 0.5]), max_size=1)),
            hot={machine.node(at).cpus.mask: draw(st.booleans()) for at in draw(st.sets(chosen, max_size=2))},
        ),
        reserved=draw(st.sampled_from([CpuSet(), CpuSet.of((0,))])),
        rules=Rules(max_exclusive_cpus_per_namespace=draw(st.sampled_from([None, None, 0, 2, 4]))),
    )
    return NodeView(name, "s", "1", machine, occupancy)
