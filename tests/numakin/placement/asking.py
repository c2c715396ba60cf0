"""Requests in a line, for the tests of decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numakin.placement.decide.decide import Decision, Kin, Request, decide
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine
from numakin.placement.optin.parsing import OptIn
from numakin.placement.state.occupancy import Occupancy
from tests.machines import GIB


def demand(
    cpu: float = 1, memory: float = 1, limit: float | None = 0, hugepages: Mapping[int, int] | None = None
) -> Demand:
    """cpu in CPUs, memory in GiB; limit 0: the request, None: none."""
    bytes_limit = None if limit is None else int((limit or memory) * GIB)
    return Demand(int(cpu * 1000), int(memory * GIB), bytes_limit, hugepages or {})


def asks(pod: str, cpu: float = 1, memory: float = 1, **wishes: Any) -> Request:
    """A one-container pod of shop/web; wishes: fields of OptIn (its `memory` as `mems`), of `demand`, `devices`, or
    `workload`.
    """
    own = demand(cpu, memory, wishes.pop("limit", 0), wishes.pop("hugepages", None))
    devices = tuple(NumaSet.parse(entry) for entry in wishes.pop("devices", ()))
    if "mems" in wishes:
        wishes["memory"] = wishes.pop("mems")
    name, whole = wishes.pop("name", "main"), wishes.pop("pod_demand", own)
    workload = wishes.pop("workload", "")
    opt_in = OptIn(wishes.pop("group", "shop/web"), **wishes)
    return Request(pod, f"{pod}-{name}", name, opt_in, own, whole, devices, workload)


def settle(
    machine: Machine, occupancy: Occupancy, request: Request, kin: Kin | None = None
) -> tuple[Decision, Occupancy]:
    """A decision, and the occupancy after it."""
    decision = decide(machine, occupancy, request, kin or Kin())
    return decision, decision.applied(occupancy, request)


def filled(machine: Machine, *requests: Request, occupancy: Occupancy | None = None) -> Occupancy:
    """The occupancy after these came one after the other."""
    occupancy = occupancy or Occupancy()
    for request in requests:
        _, occupancy = settle(machine, occupancy, request)
    return occupancy


def at(numa_nodes: str, **more: Any) -> Kin:
    """A nomination."""
    return Kin(expected=NumaSet.parse(numa_nodes), **more)


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text)


def nodes(text: str) -> NumaSet:
    return NumaSet.parse(text)
