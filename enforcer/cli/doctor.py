"""`numakin-enforcer doctor`: checks this node and reports in plain words what will work and what will not."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from enforcer.bypass.cri_client import CriClient, RuntimeAway
from enforcer.bypass.follower import POLL_S
from enforcer.cli import met
from enforcer.cli.findings import BAD, GOOD, NOTE, Finding, ranked
from enforcer.cli.status import NobodyAnswersError, ask
from enforcer.hook.hardware.node import read_by, reserved_and_rules
from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.cpuset_owners import cpuset_owners
from enforcer.machine.errors import MachineError
from enforcer.machine.kubelet import managers
from enforcer.machine.listening import listened_to
from enforcer.machine.load import memory_stall
from enforcer.machine.memory import BALANCING, TIERING, numa_balancing
from enforcer.observe.attribution.unseen import BY_NAMESPACE, BY_PROCESS
from enforcer.observe.bpf.loader import BUILT_AHEAD, LoadRefused
from enforcer.observe.collectors import unix_sockets, wakeups
from enforcer.observe.collectors.chain import NO_CGROUP_V2, Sources, choose
from enforcer.observe.collectors.probes import Probes
from enforcer.observer.podresources import Absent, Lister, Unanswered, told_of
from enforcer.settings.config import PLUGIN_NAME, Config, ConfigError
from numakin.placement.model.errors import PlacementError
from numakin.terminal import console

NRI_CONFIGURED = "containerd config dump | grep -A6 nri || crio status config | grep -A4 nri"
KUBELET_CONFIGURED = "grep -i cpuManagerPolicy /var/lib/kubelet/config.yaml"

SIGNS = {"good": ("ok  ", "green"), "note": ("note", "yellow"), "bad": ("bad ", "red")}
"""By grade: the sign and its colour."""


def examine(config: Config) -> Iterator[Finding]:
    """Every check, each tried for real; a check that breaks is a finding too."""
    checks: tuple[tuple[str, Callable[[Config], Iterator[Finding]]], ...] = (
        ("CRI", _cri) if config.mode == "bypass" else ("NRI", _nri),
        ("NUMA", _numa),
        ("cgroups", _cgroups),
        ("pressure", _pressure),
        ("memory", _balancing),
        ("kubelet", _kubelet),
        ("enforcer", _enforcer),
        ("cpusets", _cpusets),
        ("devices", _devices),
        ("traffic", _traffic),
    )
    for topic, check in checks:
        try:
            yield from check(config)
        except (OSError, MachineError, PlacementError, ConfigError) as error:
            yield Finding(topic, "bad", str(error))


def doctor(config: Config, *, as_json: bool) -> int:
    """Prints the findings, the worst first; 1 when one is bad."""
    findings = ranked(examine(config))
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        out = console()
        for finding in findings:
            text = Text.assemble(SIGNS[finding.grade], f" {finding.topic:8} {finding.text}")
            out.print(text, highlight=False, soft_wrap=True)
            if finding.command:
                out.print(f"{'':14}$ {finding.command}", highlight=False, soft_wrap=True)
    return 1 if any(finding.grade == BAD for finding in findings) else 0


def _nri(config: Config) -> Iterator[Finding]:
    path = Path(config.nri_socket)
    if not path.exists():
        text = (
            f"no socket at {path}: switch NRI on in the container runtime, or use --mode bypass; until then pods start"
        )
        text += " unpinned"
        yield Finding("NRI", "bad", text, NRI_CONFIGURED)
    elif not stat.S_ISSOCK(path.stat().st_mode):
        yield Finding("NRI", "bad", f"{path} is not a socket", f"ls -l {path}")
    elif not os.access(path, os.R_OK | os.W_OK):
        yield Finding("NRI", "bad", f"{path} may not be opened by this user: run as root", f"ls -l {path}")
    else:
        yield _listening(path, Path(config.procfs))


def _listening(path: Path, procfs: Path) -> Finding:
    """By the kernel's table: a connection without a registration is an error in the runtime's log, and keeps other
    plugins waiting.
    """
    listening = listened_to(procfs, path)
    if listening is None:
        return Finding("NRI", "note", f"there is a socket at {path}; whether a runtime listens can't be seen from here")
    if not listening:
        text = f"no process listens at {path}: the container runtime is down, or has NRI switched off"
        return Finding("NRI", "bad", text, NRI_CONFIGURED)
    return Finding("NRI", "good", f"the container runtime listens at {path}")


def _enforcer(config: Config) -> Iterator[Finding]:
    """How the running one is, and its members."""
    try:
        answer = ask(Path(config.run_dir))
    except NobodyAnswersError as error:
        yield Finding("enforcer", NOTE, f"{error}; what it has met is not known")
        return
    yield from met.of_the_process(answer, config)
    yield from met.of_the_members(answer, config)


def _cpusets(config: Config) -> Iterator[Finding]:
    """Who sets them besides us: as the running enforcer has met it, and as processes show."""
    known = cpuset_owners(Path(config.procfs), PLUGIN_NAME)
    owners = f": {'; '.join(known)}" if known else ""
    try:
        answer = ask(Path(config.run_dir))
    except NobodyAnswersError:
        answer = None
    found = [*met.of_other_owners(answer, config, owners)] if answer is not None else []
    yield from found
    if known and not found:
        text = f"others may set them, and numakin yields for each that they set{owners}"
        yield Finding("cpusets", NOTE, text, met.command("status", config))
    elif not found and not (answer is not None and met.stray(answer)):
        seen = "no process is known to set any besides numakin"
        yield Finding("cpusets", GOOD, seen + (", and none was met" if answer is not None else ""))


def _cri(config: Config) -> Iterator[Finding]:
    """Bypass mode's runtime: whether it answers, and how soon it reports a container."""
    try:
        with CriClient(config.cri_socket) as runtime:
            version = runtime.version()
            runtime.containers()
    except RuntimeAway as error:
        shown = f"crictl --runtime-endpoint unix://{config.cri_socket.removeprefix('unix://')} version"
        yield Finding("CRI", "bad", f"no CRI at {config.cri_socket}: {error}", shown)
        return
    yield Finding("CRI", "good", f"{version.name} {version.version} answers at {config.cri_socket}")
    soon = f"at once where its events are on, else within {POLL_S} s" if version.broadcasts else f"within {POLL_S} s"
    yield Finding("CRI", "note", f"bypass: containers are pinned after their start, {soon}; NRI would be before it")
    tree = CgroupTree.discover(Path(config.procfs))
    folder = tree.folder("/")
    if folder is not None and os.statvfs(folder).f_flag & os.ST_RDONLY:
        yield Finding("CRI", "bad", f"{folder} is mounted read-only: no cpuset can be written")


def _numa(config: Config) -> Iterator[Finding]:
    reading = read_by(config)
    machine = reading.machine
    yield from (Finding("NUMA", "note", f"in doubt: {doubt}") for doubt in reading.doubts)
    if isolated := machine.all_cpus - machine.cpus:
        yield Finding("NUMA", "note", f"CPUs {isolated} are isolated by the kernel: no member is given them")
    if withheld := machine.all_mems - machine.mems:
        text = f"NUMA nodes {withheld} hold movable pages alone (GPUs' memory, CXL): no member is bound to them"
        yield Finding("NUMA", "note", text + "; --memory-tiers allows what is not a GPU's")
    try:
        reserved_and_rules(config, machine)
    except (ConfigError, PlacementError) as error:
        yield Finding("NUMA", "bad", f"with these options the enforcer does not start here: {error}")
    count = len(machine.cpu_nodes)
    if count == 1:
        yield Finding("NUMA", "note", f"one NUMA node with CPUs ({machine.cpus}): there is nothing to gain here")
        return
    sizes = sorted({len(numa_node.cpus) for numa_node in machine.numa_nodes if numa_node.cpus})
    yield Finding("NUMA", "good", f"{count} NUMA nodes with {' or '.join(map(str, sizes))} CPUs each")
    bare = [
        str(numa_node.id) for numa_node in machine.numa_nodes if numa_node.cpus and numa_node.id not in machine.mems
    ]
    if bare:
        yield Finding("NUMA", "note", f"NUMA nodes without memory: {', '.join(bare)}; their pods use the nearest")


def _cgroups(config: Config) -> Iterator[Finding]:
    version = CgroupTree.discover(Path(config.procfs)).version()
    yield Finding("cgroups", "good", f"cpusets are in cgroup v{version}")
    if version == 1:
        yield Finding("cgroups", "note", "cgroup v1: a moved container's memory stays where it is")


def _pressure(config: Config) -> Iterator[Finding]:
    if memory_stall(Path(config.procfs)) is None:
        text = (
            "the kernel keeps no pressure stall information (psi=1 at boot): no NUMA node is avoided for its pressure"
        )
        yield Finding("pressure", "note", text)
    else:
        yield Finding("pressure", "good", "the kernel reports how long memory is waited for")


STAYS = "what a move leaves behind stays there, unless it is bound and move.numakin.io is cpus-and-memory"
FOLLOWS = (
    "memory that is open and left behind by a move follows its CPUs slowly, at the cost of page faults; where memory "
    "is bound there is nothing for it to move"
)
BALANCED = {
    None: f"the kernel was built without NUMA balancing: {STAYS}",
    0: f"the kernel's NUMA balancing is off: {STAYS}",
    BALANCING: f"the kernel's NUMA balancing is on: {FOLLOWS}",
    TIERING: f"the kernel's NUMA balancing is for memory tiers alone (2): {STAYS}",
    BALANCING | TIERING: f"the kernel's NUMA balancing is on, for memory tiers too (3): {FOLLOWS}",
}
"""By /proc/sys/kernel/numa_balancing. None of it is wrong: what is bound is where it should be in any case."""


def _balancing(config: Config) -> Iterator[Finding]:
    mode = numa_balancing(Path(config.procfs))
    unknown = f"the kernel's NUMA balancing is in a mode that numakin does not know: {mode}"
    yield Finding("memory", "good" if mode in BALANCED else "note", BALANCED.get(mode, unknown))


def _kubelet(config: Config) -> Iterator[Finding]:
    kubelet = managers(Path(config.procfs))
    if kubelet is None:
        text = "its state can't be read from here: check that its cpuManagerPolicy is none"
        yield Finding("kubelet", "note", text, KUBELET_CONFIGURED)
        return
    if kubelet.cpu == "static":
        text = "cpuManagerPolicy is static: the kubelet owns every cpuset, and numakin will yield for each"
        yield Finding("kubelet", "bad", f"{text}; docs/migration.md says how to change it", KUBELET_CONFIGURED)
    else:
        yield Finding("kubelet", "good", f"cpuManagerPolicy is {kubelet.cpu or 'none'}")
    if kubelet.memory == "Static":
        text = "memoryManagerPolicy is Static: the kubelet binds the memory of Guaranteed pods, and numakin will stand"
        yield Finding("kubelet", "note", f"{text} aside for them")


def _devices(config: Config) -> Iterator[Finding]:
    path = config.podresources_socket
    if path == "off":
        yield Finding("devices", "note", "the kubelet is not asked: devices are known by their numbers alone")
        return
    lister = Lister(path)
    try:
        pods, allocatable = lister.pods(), lister.allocatable_devices()
        told = told_of(pods, allocatable)
    except Absent:
        text = f"no podresources socket at {path}: devices are known by their numbers alone"
        yield Finding("devices", "note", text)
    except Unanswered as error:
        yield Finding("devices", "note", f"the kubelet does not report devices: {error}")
    else:
        text = f"the kubelet reports devices at {path}: containers with some: {len(told.rows)}"
        yield Finding("devices", "good", text)
        if allocatable is None:
            text = (
                "the kubelet does not say which devices are free (from 1.23 on it does): groups do not begin near them"
            )
            yield Finding("devices", "note", text)
        elif told.free:
            rows = (f"{row.free} of {row.resource} near NUMA node {row.numa_nodes or 'unknown'}" for row in told.free)
            yield Finding("devices", "good", f"free devices: {', '.join(rows)}")
    finally:
        lister.close()


def _traffic(_config: Config) -> Iterator[Finding]:
    sources = Sources.here(tuple)
    choice = choose(sources)
    works = choice.collector.name
    choice.collector.close()
    grade = "bad" if works == "none" else "good" if not choice.refusals else "note"
    yield Finding("traffic", grade, f"seen by {works}")
    for refusal in choice.refusals:
        yield Finding("traffic", "note", f"not by {refusal.name}: {refusal.reason}")
    yield from _attributed(sources, works)
    probes = [choice.collector] if isinstance(choice.collector, Probes) else []
    if sources.cgroup is None:
        yield Finding("traffic", "note", f"unix sockets and wake-ups are not seen: {NO_CGROUP_V2}")
        yield from _programs(probes)
        return
    for traffic, opened in (("unix sockets", unix_sockets.open_collector), ("wake-ups", wakeups.open_collector)):
        try:
            collector = opened()
        except (LoadRefused, OSError) as error:
            yield Finding("traffic", "note", f"{traffic} are not seen: {error}")
        else:
            collector.close()
            probes.append(collector)
            yield Finding("traffic", "good", f"{traffic} are seen")
    yield from _programs(probes)


def _programs(probes: Iterable[Probes]) -> Iterator[Finding]:
    """How the programs in the kernel came there."""
    for how in dict.fromkeys(each.loaded.how for each in probes):
        yield Finding("traffic", "good" if how == BUILT_AHEAD else "note", f"BPF programs: {how}")


def _attributed(sources: Sources, works: str) -> Iterator[Finding]:
    """How traffic is attributed to containers where cgroups do not show it."""
    if not sources.identity.by_namespace or works == "none":
        return
    text = "cgroup v1: a pod without a cgroup v2 of its own is known by its address"
    if works in BY_NAMESPACE:
        text += " and network namespace"
    yield Finding("traffic", "note", text)
    if works in BY_PROCESS and sources.identity.host_namespace:
        yield Finding("traffic", "note", "cgroup v1: pods in the host's network are known by their processes")
    else:
        text = "cgroup v1: pods in the host's network can't be told apart, unless each has a cgroup v2 of its own"
        yield Finding("traffic", "note", text)
