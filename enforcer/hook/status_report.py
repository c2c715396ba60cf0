"""What `numakin-enforcer status` shows: the hook's state as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from enforcer.hook.agent import Agent
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.state.memory_places import home_of
from numakin.placement.state.occupancy import Allocation, Reservation
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb


def of(agent: Agent) -> dict[str, object]:
    """All that the agent knows."""
    return {
        "released": agent.ledger.released,
        "generation": agent.occupancy.generation,
        "containers": _containers(agent),
        "hot": [str(CpuSet(mask)) for mask, hot in sorted(agent.occupancy.live.hot.items()) if hot],
        "planned_moves": [asdict(move) for move in agent.moves.planned.now],
        "counts": dict(agent.records.counts),
        "devices": agent.ledger.pod_devices.rows,
        "free_devices": [
            {"resource": resource, "numa_nodes": str(NumaSet(mask)), "free": free}
            for (resource, mask), free in sorted(agent.occupancy.live.devices.items())
        ],
        "yielded": asdict(agent.ledger.yielded) | {"powerless": agent.ledger.yielded.powerless},
        "conflicts": [f"{workload} {name}" for workload, name in agent.creations.proven],
        "quotas": {name: str(quota) for name, quota in agent.ledger.demands.quotas.items()},
    }


LEFT = {
    "yielded": "yielded",
    "conflict": "conflict",
    "vm": "in a virtual machine",
    "refused": "refused",
    "release": "released",
}
"""What a container is that nothing of ours confines, by the event of its last decision."""

PINNED, LEFT_OPEN, AS_ASKED, NOT_OURS, STOPPED = "pinned", "left open", "open as asked", "not opted in", "stopped"


def _containers(agent: Agent) -> list[dict[str, object]]:
    """The last decision on each container; then the members that were pinned before this start, as they are."""
    latest, residents = agent.records.latest(), agent.residents.now()
    decided = [
        _container(agent, key, record) | _now_of(agent, residents, key) | _standing(agent, residents, key, record)
        for key, record in latest.items()
    ]
    taken_over = [
        _taken_over(residents[key], allocation, agent.occupancy.reservations[allocation.reservation])
        | _now_of(agent, residents, key)
        | _standing(agent, residents, key, pb.DecisionRecord())
        for key, allocation in agent.occupancy.allocations.items()
        if key not in latest and key in residents and residents[key].opted_in and allocation.reservation
    ]
    return [row | _found(agent, str(row["id"])) for row in decided + taken_over]


def _standing(
    agent: Agent, residents: Mapping[str, local.LocalContainer], key: str, record: pb.DecisionRecord
) -> dict[str, object]:
    """Its group, and what it is here in a word or two."""
    allocation = agent.occupancy.allocations.get(key)
    reservation = agent.occupancy.reservations.get(allocation.reservation) if allocation is not None else None
    group = reservation.group if reservation is not None else ""
    group = group or (residents[key].group if key in residents else "")
    ours = allocation is not None and allocation.reservation != key
    if ours and allocation is not None and not allocation.externally_managed:
        asked = any(reason.what == "policy none" for reason in record.reasons)
        state = PINNED if allocation.placed else AS_ASKED if asked else LEFT_OPEN
    elif record.event in LEFT:
        state = LEFT[record.event]
    else:
        state = STOPPED if allocation is None else "yielded" if ours else NOT_OURS
    return {"group": group, "state": state}


def _found(agent: Agent, key: str) -> dict[str, object]:
    """What its cgroup has instead, where that lasts; empty otherwise."""
    now = agent.read_back.differences.get(key)
    found = now.found if now is not None and now.lasts else None
    return {"found_cpus": str(found[0]) if found else "", "found_mems": str(found[1]) if found else ""}


def _now_of(agent: Agent, residents: Mapping[str, local.LocalContainer], key: str) -> dict[str, object]:
    """By what its memory can be looked at: its cgroup, and the NUMA nodes whose memory is near to it; and those that it
    is let out to. All are empty where it is not pinned.
    """
    allocation = agent.occupancy.allocations.get(key)
    reservation = agent.occupancy.reservations.get(allocation.reservation) if allocation is not None else None
    if key not in residents or reservation is None or not reservation.opted_in:
        return {"cgroup": "", "home_mems": "", "let_out": ""}
    home = home_of(agent.ledger.machine, reservation.numa_nodes)
    return {"cgroup": residents[key].cgroups_path, "home_mems": str(home), "let_out": str(reservation.let_out)}


def _taken_over(container: local.LocalContainer, allocation: Allocation, reservation: Reservation) -> dict[str, object]:
    return {
        "pod": f"{container.namespace}/{container.pod_name}",
        "container": container.name,
        "id": container.id,
        "numa_nodes": str(reservation.numa_nodes),
        "cpus": str(allocation.cpus),
        "mems": str(allocation.mems),
        "reasons": ["taken over: it was there when the enforcer started"],
    }


def _container(agent: Agent, key: str, record: pb.DecisionRecord) -> dict[str, object]:
    allocation = agent.occupancy.allocations.get(key)
    return {
        "pod": f"{record.namespace}/{record.pod_name}",
        "container": record.container_name,
        "id": key,
        "numa_nodes": record.numa_nodes,
        "cpus": str(allocation.cpus) if allocation is not None else "",
        "mems": str(allocation.mems) if allocation is not None else "",
        "reasons": [
            " ".join(filter(None, (reason.what, reason.number))) + f": {reason.effect}" for reason in record.reasons
        ],
    }
