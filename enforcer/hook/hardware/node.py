"""The node as the agent is given it: its hardware and live facts, from where the configuration says. Standard library
only.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.hardware.live import LiveReader
from enforcer.machine.cgroup import CgroupTree, CpusAndMems
from enforcer.machine.devices import numa_node_of
from enforcer.machine.errors import MachineError
from enforcer.machine.memory import policy_of, takes_preferred_many
from enforcer.machine.sysfs import MachineReading, read
from enforcer.machine.tree import Tree
from enforcer.settings import policy_options
from enforcer.settings.config import Config, ConfigError
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.rules import Rules
from numakin.placement.model.topology import Machine
from numakin.process.log import Log

P = ParamSpec("P")
T = TypeVar("T")

logger = Log("hook.node")


def read_node(config: Config) -> NodeFacts:
    """MachineError, PlacementError, ConfigError or OSError, each saying why, when it can't be worked on."""
    sysfs, procfs = Path(config.sysfs), Path(config.procfs)
    for option, folder, below in (("sysfs", sysfs, "devices/system/cpu"), ("procfs", procfs, "mounts")):
        if not (folder / below).exists():
            raise ConfigError(f"{option}: {folder} has no {below}: name the folder where it is mounted by --{option}")
    reading = read_by(config)
    machine = _of_pods(config, reading.machine)
    for doubt in reading.doubts:
        logger.warning("a fact about the machine is in doubt", what=doubt)
    reserved, rules = reserved_and_rules(config, machine)
    if rules.everyone:
        logger.warning(
            "policy option shared-pool=all: containers that have NOT opted in are moved off exclusive CPUs too"
        )
    live, tree = LiveReader(machine, sysfs, procfs), CgroupTree.discover(procfs)
    return NodeFacts(
        machine=machine,
        reserved=reserved,
        cpuset_now=_careful(partial(_cpuset, tree), "a cgroup can't be read", None),
        widest_cpuset=_careful(tree.widest_cpuset, "a cgroup can't be read", None),
        memory_policy=partial(policy_of, procfs),
        memory_policies=takes_preferred_many(sysfs, procfs),
        memory_now=_careful(tree.memory_by_numa_node, "a container's memory can't be read", None),
        limited=_careful(tree.pod_limits_memory, "a pod's memory limit can't be read", None),
        pod_cgroup=_careful(tree.has_pod, "a pod's cgroup can't be looked at", otherwise=True),
        free_memory=live.free_memory,
        load=live.load,
        busy_cpus=lambda: live.busy_cpus,
        cpu_seconds=_careful(tree.cpu_seconds, "a container's CPU time can't be read", None),
        cpu_waited=_careful(tree.cpu_waited, "a container's CPU pressure can't be read", None),
        device_node=_careful(
            partial(numa_node_of, sysfs, proc_root=procfs), "a device's NUMA node can't be read", None
        ),
        rules=rules,
        in_vm=_vm_runtimes(config),
        within_others=policy_options.within_others(config.policy_options) and config.mode == "nri",
        doubts=reading.doubts,
    )


def reserved_and_rules(config: Config, machine: Machine) -> tuple[CpuSet, Rules]:
    """As the configuration has them; ConfigError or PlacementError where they are not for this machine."""
    reserved, rules = _reserved(config, machine), policy_options.rules(config.policy_options)
    rules.check(machine, reserved)
    return reserved, rules


def read_by(config: Config) -> MachineReading:
    """The machine as this configuration has it; errors as `read_node`."""
    tiers = NumaSet.parse(config.memory_tiers)
    reading = read(Path(config.sysfs), node_name(config), Path(config.procfs), tiers)
    nodes = reading.machine.numa_nodes
    memory_alone = NumaSet.of(node.id for node in nodes if node.memory and not node.all_cpus)
    possible = Tree(Path(config.sysfs) / "devices/system/node").parsed("possible", NumaSet.parse) or NumaSet()
    # Until its memory is added, a NUMA node is offline, or online with nothing in it.
    later = possible - NumaSet.of(node.id for node in nodes if node.memory or node.all_cpus)
    if strange := tiers - memory_alone - later:
        known = memory_alone or "none"
        raise ConfigError(f"memory-tiers: NUMA node {strange} is not of memory alone; of that kind: {known}")
    return replace(reading, doubts=(*reading.doubts, *_withheld_from_pods(config, reading.machine)))


def _of_pods(config: Config, machine: Machine) -> Machine:
    """By version 1 a container is refused what the cgroup of all pods lacks, and so its start; by version 2 it is given
    something else. It lacks what was added, or offline for a while (version 1), or an operator has left out: such CPUs
    count as isolated, such memory as withheld.
    """
    _, (cpus, mems) = _cgroup_of_pods(config, machine) or (None, (machine.cpus, machine.mems))
    cpus = machine.cpus if cpus.isdisjoint(machine.cpus) else cpus
    mems = machine.mems if mems.isdisjoint(machine.mems) else mems
    nodes = (
        replace(
            node,
            cpus=node.cpus & cpus,
            isolated=node.isolated | (node.cpus - cpus),
            withheld=node.withheld or (node.id in machine.mems and node.id not in mems),
        )
        for node in machine.numa_nodes
    )
    return machine if machine.cpus <= cpus and machine.mems <= mems else replace(machine, numa_nodes=tuple(nodes))


def _cgroup_of_pods(config: Config, machine: Machine) -> tuple[Path, CpusAndMems] | None:
    """With what it has; None where that is not known."""
    try:
        all_pods = CgroupTree.discover(Path(config.procfs)).of_all_pods()
    except (OSError, MachineError):
        return None
    if all_pods is None:
        return None
    folder, has, above = all_pods
    ours = bool(has[0]) and machine.cpus <= above  # else the cgroups are another machine's
    return (folder, has) if ours else None


def _withheld_from_pods(config: Config, machine: Machine) -> tuple[str, ...]:
    all_pods = _cgroup_of_pods(config, machine)
    if all_pods is None:
        return ()
    folder, (cpus, _) = all_pods
    outside = machine.cpus - cpus - CpuSet.parse(config.reserved_cpus)
    what = f"{folder} gives pods CPUs {cpus} alone: no member can have the others; name them by --reserved-cpus"
    return (f"{what}: {outside}",) if outside else ()


def node_name(config: Config) -> str:
    return config.node_name or socket.gethostname().lower()


def _reserved(config: Config, machine: Machine) -> CpuSet:
    """Isolated CPUs may be named: no member is given them anyway."""
    reserved, online = CpuSet.parse(config.reserved_cpus), machine.all_cpus
    present = Tree(Path(config.sysfs) / "devices/system/cpu").parsed("present", CpuSet.parse) or online
    if not reserved <= online | present:
        raise ConfigError(f"reserved-cpus: CPUs {reserved - online} are not online; online: {online}")
    if offline := reserved - online:
        logger.warning("reserved CPUs are offline", cpus=offline)
    if machine.cpus <= reserved:
        raise ConfigError(f"reserved-cpus: {reserved} is every CPU of the machine that containers are given")
    return reserved & machine.cpus


def _vm_runtimes(config: Config) -> Callable[[str], bool]:
    """By patterns of handlers' names; the runtime's default handler has none."""
    patterns = [re.compile(".*".join(map(re.escape, each.split("*")))) for each in config.vm_runtimes.split(",")]
    return lru_cache(maxsize=64)(lambda handler: any(pattern.fullmatch(handler) for pattern in patterns if handler))


def _cpuset(tree: CgroupTree, cgroups_path: str) -> tuple[CpuSet, NumaSet] | None:
    cpuset = tree.cpuset(cgroups_path)
    return (cpuset.cpus, cpuset.mems) if cpuset is not None else None


def _careful(read: Callable[Concatenate[str, P], T], failed: str, otherwise: T) -> Callable[Concatenate[str, P], T]:
    """Reads of a cgroup, by its path, or of a device, by its kind and numbers; where it can't be read, logs `failed`
    and returns `otherwise`.
    """

    def careful(of: str, /, *more: P.args, **named: P.kwargs) -> T:
        try:
            return read(of, *more, **named)
        except (OSError, MachineError) as error:
            logger.warning(failed, of=(of, *more), error=error)
            return otherwise

    return careful
