"""`numakin-enforcer doctor`: looks at this node and says in plain words what will work and what will not."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from enforcer.config import Config
from enforcer.cri.follow import POLL_S
from enforcer.cri.runtime import Runtime, RuntimeAway
from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.errors import MachineError
from enforcer.machine.load import machine_pressure
from enforcer.machine.sysfs import read_machine
from enforcer.observe import unix_sockets, wakeups
from enforcer.observe.chain import Sources, cgroup_root, choose
from enforcer.observe.loader import Refused
from enforcer.podresources import Absent, Lister, Unanswered, told_of
from placement.errors import PlacementError

CPU_MANAGER_STATE = Path("/var/lib/kubelet/cpu_manager_state")
"""Where the kubelet keeps its CPU manager's policy (kubelet --root-dir's default)."""

SIGNS = {"good": "[green]ok  [/]", "note": "[yellow]note[/]", "bad": "[red]bad [/]"}


@dataclass(frozen=True, slots=True)
class Finding:
    """grade: good, note (works, but read this), bad (something will not work)."""

    topic: str
    grade: str
    text: str


def examine(config: Config) -> Iterator[Finding]:
    """Every check, each tried for real; a check that breaks is a finding too."""
    checks: tuple[tuple[str, Callable[[Config], Iterator[Finding]]], ...] = (
        ("CRI", _cri) if config.mode == "bypass" else ("NRI", _nri),
        ("NUMA", _numa),
        ("cgroups", _cgroups),
        ("pressure", _pressure),
        ("kubelet", _kubelet),
        ("devices", _devices),
        ("traffic", _traffic),
    )
    for topic, check in checks:
        try:
            yield from check(config)
        except (OSError, MachineError, PlacementError) as error:
            yield Finding(topic, "bad", str(error))


def doctor(config: Config, *, as_json: bool) -> int:
    """Prints the findings; 1 when one is bad."""
    findings = list(examine(config))
    if as_json:
        rows = [{"topic": one.topic, "grade": one.grade, "text": one.text} for one in findings]
        print(json.dumps(rows, indent=2))
    else:
        console = Console()
        for one in findings:
            console.print(f"{SIGNS[one.grade]} {one.topic:8} {one.text}", highlight=False, soft_wrap=True)
    return 1 if any(one.grade == "bad" for one in findings) else 0


def _nri(config: Config) -> Iterator[Finding]:
    path = Path(config.nri_socket)
    if not path.exists():
        text = (
            f"no socket at {path}: switch NRI on in the container runtime, or use --mode bypass; until then pods start"
        )
        text += " unpinned"
        yield Finding("NRI", "bad", text)
    elif not stat.S_ISSOCK(path.stat().st_mode):
        yield Finding("NRI", "bad", f"{path} is not a socket")
    elif not os.access(path, os.R_OK | os.W_OK):
        yield Finding("NRI", "bad", f"{path} may not be opened by this user: run as root")
    else:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(2)
            sock.connect(str(path))
        yield Finding("NRI", "good", f"the container runtime listens at {path}")


def _cri(config: Config) -> Iterator[Finding]:
    """Bypass mode's runtime: whether it answers, and how soon it tells of a container."""
    try:
        with Runtime(config.cri_socket) as runtime:
            version = runtime.version()
            runtime.containers()
    except RuntimeAway as error:
        yield Finding("CRI", "bad", f"no CRI at {config.cri_socket}: {error}")
        return
    yield Finding("CRI", "good", f"{version.name} {version.version} answers at {config.cri_socket}")
    soon = f"at once where its events are on, else within {POLL_S} s" if version.broadcasts else f"within {POLL_S} s"
    yield Finding("CRI", "note", f"bypass: containers are pinned after their start, {soon}; NRI would be before it")
    tree = CgroupTree.discover(Path(config.procfs))
    folder = tree.folder("/")
    if folder is not None and os.statvfs(folder).f_flag & os.ST_RDONLY:
        yield Finding("CRI", "bad", f"{folder} is mounted read-only: no cpuset can be written")


def _numa(config: Config) -> Iterator[Finding]:
    machine = read_machine(Path(config.sysfs), proc_root=Path(config.procfs))
    count = len(machine.cpu_nodes)
    if count == 1:
        yield Finding("NUMA", "note", f"one NUMA node with CPUs ({machine.cpus}): there is nothing to gain here")
        return
    sizes = sorted({len(one.cpus) for one in machine.numa_nodes if one.cpus})
    yield Finding("NUMA", "good", f"{count} NUMA nodes with {' or '.join(map(str, sizes))} CPUs each")
    bare = [str(one.id) for one in machine.numa_nodes if not one.memory]
    if bare:
        yield Finding("NUMA", "note", f"NUMA nodes without memory: {', '.join(bare)}; their pods use the nearest")


def _cgroups(config: Config) -> Iterator[Finding]:
    version = CgroupTree.discover(Path(config.procfs)).version()
    yield Finding("cgroups", "good", f"cpusets are in cgroup v{version}")
    if version == 1:
        yield Finding("cgroups", "note", "cgroup v1: a moved container's memory stays where it is")


def _pressure(config: Config) -> Iterator[Finding]:
    if machine_pressure("memory", Path(config.procfs)) is None:
        text = (
            "the kernel keeps no pressure stall information (psi=1 at boot): no NUMA node is avoided for its pressure"
        )
        yield Finding("pressure", "note", text)
    else:
        yield Finding("pressure", "good", "the kernel tells how long memory is waited for")


def _kubelet(_config: Config) -> Iterator[Finding]:
    if not CPU_MANAGER_STATE.exists():
        yield Finding("kubelet", "note", f"no {CPU_MANAGER_STATE} to be read here: check that cpuManagerPolicy is none")
        return
    policy = json.loads(CPU_MANAGER_STATE.read_text()).get("policyName", "")
    if policy == "static":
        text = "cpuManagerPolicy is static: the kubelet owns every cpuset, and numakin will stand aside for each"
        yield Finding("kubelet", "bad", text)
    else:
        yield Finding("kubelet", "good", f"cpuManagerPolicy is {policy}")


def _devices(config: Config) -> Iterator[Finding]:
    path = config.podresources_socket
    if path == "off":
        yield Finding("devices", "note", "the kubelet is not asked: devices are known by their numbers alone")
        return
    lister = Lister(path)
    try:
        equipped = len(told_of(lister.pods()).rows)
    except Absent:
        text = f"no podresources socket at {path}: devices are known by their numbers alone"
        yield Finding("devices", "note", text)
    except Unanswered as error:
        yield Finding("devices", "note", f"the kubelet does not tell devices: {error}")
    else:
        yield Finding("devices", "good", f"the kubelet tells devices at {path}: containers with some: {equipped}")
    finally:
        lister.close()


def _traffic(_config: Config) -> Iterator[Finding]:
    choice = choose(Sources(cgroup_root(), tuple))
    works = choice.collector.name
    choice.collector.close()
    grade = "bad" if works == "none" else "good" if not choice.refusals else "note"
    yield Finding("traffic", grade, f"seen by {works}")
    for one in choice.refusals:
        yield Finding("traffic", "note", f"not by {one.name}: {one.reason}")
    for what, opened in (("unix sockets", unix_sockets.open_collector), ("wake-ups", wakeups.open_collector)):
        try:
            opened().close()
        except (Refused, OSError) as error:
            yield Finding("traffic", "note", f"{what} are not seen: {error}")
        else:
            yield Finding("traffic", "good", f"{what} are seen")
