"""What the agent asks of its node: its hardware, and what the kernel says now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from enforcer.hook.facts.demands import Limited
from enforcer.hook.facts.sandboxes import PodCgroup
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.live_usage import Live
from numakin.placement.model.rules import Rules
from numakin.placement.model.topology import Machine

DEFAULT_RULES = Rules()


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The machine, and functions that read it.

    cpuset_now: a container's cgroup path -> what its cgroup has, None when unknown. free_memory: NUMA node -> bytes;
    load: what else is live there. Both may leave out what is not known. widest_cpuset: a container's cgroup path -> all
    that its cgroup may have, by the one above it; None when unknown. memory_policy: a process id -> the kernel's word
    for the policy that is in force there, None when it can't be read.
    memory_policies: whether the kernel knows those that are asked for.
    memory_now: a container's cgroup path -> bytes that it has on each NUMA node, None when unknown.
    device_node: (c or b, major, minor) -> the NUMA node that the device is near to, None when it has none.
    busy_cpus: by CPU, the share of the time since the reading before that it was in use. cpu_seconds: a cgroup path ->
    the CPU time that it has taken, None when unknown. cpu_waited: likewise the seconds in which something of it waited
    for a CPU.
    limited: as `Demands` asks it. pod_cgroup: as `Sandboxes` does.
    in_vm: whether a runtime handler runs containers in virtual machines, where a cpuset means another thing.
    within_others: whether a member may be narrowed within a wider cpuset that another owner gave it.
    doubts: what of the hardware could not be read, in sentences.
    """

    machine: Machine
    reserved: CpuSet
    cpuset_now: Callable[[str], tuple[CpuSet, NumaSet] | None]
    free_memory: Callable[[], Mapping[int, int]]
    load: Callable[[], Live] = Live
    device_node: Callable[[str, int, int], int | None] = lambda _kind, _major, _minor: None
    busy_cpus: Callable[[], Mapping[int, float]] = dict
    cpu_seconds: Callable[[str], float | None] = lambda _cgroups_path: None
    cpu_waited: Callable[[str], float | None] = lambda _cgroups_path: None
    rules: Rules = DEFAULT_RULES
    limited: Limited = lambda _cgroups_path, _pod: None
    pod_cgroup: PodCgroup = lambda _cgroups_path, _pod: False
    widest_cpuset: Callable[[str], tuple[CpuSet, NumaSet] | None] = lambda _cgroups_path: None
    memory_policy: Callable[[int], str | None] = lambda _pid: None
    memory_policies: bool = False
    memory_now: Callable[[str], Mapping[int, int] | None] = lambda _cgroups_path: None
    in_vm: Callable[[str], bool] = lambda _runtime_handler: False
    within_others: bool = False
    doubts: tuple[str, ...] = ()
