"""What the observer knows of its node now, for Prometheus: the runtime, the members, the machine, the traffic."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from math import nan

from prometheus_client.core import Metric

from enforcer.observer.endpoint.families import family, single
from enforcer.observer.endpoint.health import Health
from enforcer.observer.planning_thread import Locality
from enforcer.observer.traffic_loop import TrafficLoop, TrafficView
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.live_usage import Live
from numakin.placement.state.occupancy import Allocation, Occupancy
from numakin.placement.state.yielded import Yielded
from numakin.process import threads
from numakin.process.version import VERSION

COLLECTORS = ("cgroup_skb", "socket_tracepoints", "fexit", "kprobes", "inet_diag", "none", "replay", "off")


def families(health: Health) -> Iterator[Metric]:
    """All of them."""
    yield from _build()
    yield from _runtime(health)
    yield from _containers(health.mirror.occupancy, health.mirror.yielded)
    yield _memory(health)
    yield from _live(health.mirror.occupancy.live)
    watching = health.watching
    yield from _traffic(watching.view if watching is not None else TrafficView("off"))
    yield from _learning(watching)
    yield single(
        "enforcer_known_uses",
        "Workloads whose use of the CPU is learned: their members count by it where it is more than their request.",
        len(health.cpu_use.known) if health.cpu_use is not None else 0,
    )
    for name, text, by_thread in threads.rows(health.threads.standings()):
        yield family(f"enforcer_{name}", text, ("thread",), by_thread)


def _learning(watching: TrafficLoop | None) -> Iterator[Metric]:
    learned_at = watching.view.learned_at if watching is not None else None
    locality = watching.locality if watching is not None else Locality()
    yield single(
        "enforcer_learning_age_seconds",
        "Since traffic was last learned from; NaN before the first window, or where none is observed.",
        nan if learned_at is None else time.monotonic() - learned_at,
    )
    yield single(
        "enforcer_traffic_local_ratio",
        "Share of the known traffic between members here that stays inside one NUMA node; NaN without any.",
        locality.now,
    )
    yield single(
        "enforcer_traffic_local_planned_ratio",
        "Share of the expected traffic between members here that the latest plan would keep inside one NUMA node.",
        locality.planned,
    )


def _build() -> Iterator[Metric]:
    versions = {(VERSION, platform.python_version()): 1.0}
    yield family("enforcer_build_info", "1, with the program's version and Python's.", ("version", "python"), versions)


def _runtime(health: Health) -> Iterator[Metric]:
    yield single("enforcer_registered", "1 while the runtime has us as a plugin.", health.ready[0])
    ago = health.attachment.confirmed_s_ago
    yield single(
        "enforcer_runtime_confirmed_seconds_ago",
        "Since the runtime last showed that it has us: by an event or an answer; NaN where that is not known.",
        nan if ago is None else ago,
    )
    yield single(
        "enforcer_untold_containers",
        "Containers that run though the runtime never reported them: it has forgotten us, or they are not its own.",
        health.census.untold if health.census is not None else 0,
    )
    yield single("enforcer_streaming", "Replicas of the extender that receive our reports.", health.streaming)
    yield single("enforcer_skewed_extenders", "Of these, those that speak another report format.", health.skewed)


def _containers(occupancy: Occupancy, yielded: Yielded) -> Iterator[Metric]:
    yield single("enforcer_members", "Containers of opted-in pods that are pinned.", sum(1 for _ in _pinned(occupancy)))
    yield single(
        "enforcer_let_out_members",
        "Members that run beyond their home, as it is hot.",
        sum(bool(reservation.let_out) for reservation in occupancy.reservations.values()),
    )
    yield single(
        "enforcer_yielded_containers",
        "Containers of opted-in pods whose cpuset another owner sets: numakin yields for them.",
        yielded.containers,
    )
    yield single(
        "enforcer_powerless",
        "1 while these are half of the containers that opted in, or more: the extender scores the node 0.",
        yielded.powerless,
    )
    yield single(
        "enforcer_foreign_containers",
        "Containers that are left alone, opted in or not: another owner sets their cpusets, or they run in a VM.",
        sum(allocation.externally_managed for allocation in occupancy.allocations.values()),
    )
    yield single(
        "enforcer_occupancy_changes_total", "Changes of the node's occupancy: its generation.", occupancy.generation
    )


def _pinned(occupancy: Occupancy) -> Iterator[Allocation]:
    """Those of members."""
    for allocation in occupancy.allocations.values():
        reservation = occupancy.reservations.get(allocation.reservation)
        if allocation.placed and not allocation.externally_managed and reservation is not None and reservation.opted_in:
            yield allocation


def _memory(health: Health) -> Metric:
    occupancy = health.mirror.occupancy
    places = health.memory.places(occupancy, _pinned(occupancy)) if health.memory is not None else None
    return family(
        "enforcer_member_memory_bytes",
        "Memory of pinned containers, by whether it lies on their NUMA nodes; no series where cgroups do not say.",
        ("place",),
        {"local": places.near, "remote": places.away} if places is not None else {},
    )


def _live(live: Live) -> Iterator[Metric]:
    """The figures that the node decides by; no series for what is not known."""
    by_node, notably = ("numa_node",), "Reported when it changed notably."
    used = {node: milli / 1000 for node, milli in live.used_cpu.items()}
    yield family("enforcer_free_memory_bytes", f"Memory that can still be had. {notably}", by_node, live.free_memory)
    yield family("enforcer_used_cpus", f"CPUs in use, a minute's mean. {notably}", by_node, used)
    yield family(
        "enforcer_memory_stalled", f"Share of time that memory was waited for. {notably}", by_node, live.stalled
    )
    yield family(
        "enforcer_free_hugepages_bytes", "Hugepages that are not in use.", ("numa_node", "size"), live.free_hugepages
    )
    yield family(
        "enforcer_hot",
        "1 for each cache domain or NUMA node whose CPUs are nearly all in use while others are not; 0: cool again.",
        ("cpus",),
        {str(CpuSet(mask)): float(hot) for mask, hot in live.hot.items()},
    )
    yield single(
        "enforcer_pressure_known", "1 where the kernel keeps pressure stall information for memory.", bool(live.stalled)
    )


def _traffic(view: TrafficView) -> Iterator[Metric]:
    yield family(
        "enforcer_collector",
        "1 for the way in which traffic is seen.",
        ("name",),
        {name: float(view.collector == name) for name in COLLECTORS},
    )
    yield family(
        "enforcer_collector_refused",
        "1 for each better way to see traffic that is refused here, with the reason.",
        ("name", "reason"),
        dict.fromkeys(view.refusals, 1.0),
    )
    yield family(
        "enforcer_traffic_unseen_containers",
        "Containers whose traffic can't be told from others'.",
        ("reason",),
        dict(view.unseen),
    )
    yield single(
        "enforcer_traffic_unattributed_bytes_total",
        "Payload bytes that belong to no container known here.",
        view.unattributed_bytes,
    )
    yield single(
        "enforcer_traffic_lost_bytes_total",
        "Payload bytes of no flow: the kernel's map was full, or neither TCP nor UDP.",
        view.lost_bytes,
    )
