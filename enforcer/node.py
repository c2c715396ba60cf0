"""The node as the agent is given it: its hardware and live facts, from where the configuration says. Standard library
only.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

from enforcer.agent import Node
from enforcer.config import Config, ConfigError
from enforcer.live import LiveReader
from enforcer.log import Log
from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.devices import numa_node_of
from enforcer.machine.errors import MachineError
from enforcer.machine.sysfs import read_machine
from placement.cpuset import CpuSet, NumaSet
from placement.rules import Rules

logger = Log("hook.node")


def read_node(config: Config) -> Node:
    """MachineError, PlacementError, ConfigError or OSError, each saying why, when it can't be worked on."""
    sysfs, procfs = Path(config.sysfs), Path(config.procfs)
    machine = read_machine(sysfs, name=node_name(config), proc_root=procfs)
    reserved, rules = _reserved(config, machine.cpus), _rules(config)
    rules.check(machine, reserved)
    if rules.everyone:
        logger.warning("shared-pool=all: containers that have NOT opted in are moved off exclusive CPUs too")
    live = LiveReader(machine, sysfs, procfs)
    return Node(
        machine=machine,
        reserved=reserved,
        cpuset_now=_cpuset_reader(procfs),
        free_memory=live.free_memory,
        load=live.load,
        device_node=partial(numa_node_of, sysfs, proc_root=procfs),
        rules=rules,
    )


def node_name(config: Config) -> str:
    return config.node_name or socket.gethostname().lower()


def _rules(config: Config) -> Rules:
    return Rules(
        prefer_closest_numa_nodes=config.prefer_closest_numa_nodes == "on",
        max_allowable_numa_nodes=int(config.max_allowable_numa_nodes),
        everyone=config.shared_pool == "all",
    )


def _reserved(config: Config, online: CpuSet) -> CpuSet:
    reserved = CpuSet.parse(config.reserved_cpus)
    if not reserved <= online:
        raise ConfigError(f"reserved-cpus: CPUs {reserved - online} are not online; online: {online}")
    if reserved == online:
        raise ConfigError(f"reserved-cpus: {reserved} is every CPU of the machine")
    return reserved


def _cpuset_reader(procfs: Path) -> Callable[[str], tuple[CpuSet, NumaSet] | None]:
    tree = CgroupTree.discover(procfs)

    def read(cgroups_path: str) -> tuple[CpuSet, NumaSet] | None:
        try:
            cpuset = tree.cpuset(cgroups_path)
        except (OSError, MachineError) as error:
            logger.warning("a cgroup can't be read", cgroup=cgroups_path, error=error)
            return None
        return (cpuset.cpus, cpuset.mems) if cpuset is not None else None

    return read
