"""The kubelet's own resource managers, by what they left on disk: who else would set cpusets here.

The files are in the kubelet's root folder, which holds every pod's secrets too, so it is not to be mounted into
our container. They are read through /proc/PID/root instead, of the kubelet's process or else of the node's first one:
for that the process ids of the node and CAP_SYS_PTRACE do, which the enforcer has to attribute traffic.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT_DIR = "/var/lib/kubelet"
"""The default of the kubelet's --root-dir, which its configuration file can't set."""

PROGRAMS = frozenset({"kubelet", "kubelite", "k3s", "rke2", "k0s"})
"""Programs that are a kubelet, or have one in them."""

LONGEST_STATE = 16 << 20
"""Bytes of a state file that are read: one of the static policy lists every container."""

_POLICY = re.compile(r"[A-Za-z-]{1,63}")

_ROOT_FLAG = re.compile(r"(?:--kubelet-arg=)?(?:--)?root-dir(?:=(.+))?")


@dataclass(frozen=True, slots=True)
class Managers:
    """The policies of the kubelet's CPU manager and memory manager, empty: no file has one. where: the folder read."""

    cpu: str
    memory: str
    where: Path


def managers(procfs: Path) -> Managers | None:
    """None when no state file can be read."""
    for folder in _folders(procfs):
        cpu, memory = (_policy(folder / f"{manager}_manager_state") for manager in ("cpu", "memory"))
        if cpu or memory:
            return Managers(cpu, memory, folder)
    return None


def _folders(procfs: Path) -> Iterator[Path]:
    """Where the kubelet's root folder may be seen, the surest first: as its command line says, and by default."""
    for process, arguments in _kubelets(procfs):
        yield process / "root" / (_root_dir_flag(arguments) or ROOT_DIR).lstrip("/")
    yield procfs / "1/root" / ROOT_DIR.lstrip("/")
    yield Path(ROOT_DIR)


def _kubelets(procfs: Path) -> Iterator[tuple[Path, list[str]]]:
    """Their processes, with their command lines."""
    for process in sorted(entry for entry in procfs.iterdir() if entry.name.isdecimal()):
        try:
            arguments = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        program = arguments[0].rpartition("/")[2]
        if program in PROGRAMS or "kubelet" in arguments[1:2]:
            yield process, arguments


def _root_dir_flag(arguments: list[str]) -> str:
    for at, argument in enumerate(arguments):
        flag = _ROOT_FLAG.fullmatch(argument)
        if flag is not None:
            return flag[1] or next(iter(arguments[at + 1 :]), "")
    return ""


def _policy(file: Path) -> str:
    """The policy's name; empty where there is no file, none that may be read, or none of the kubelet's. The folder may
    be any program's: a pipe there does not block the reader.
    """
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as opened:
            regular = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
            state = json.loads(opened.read(LONGEST_STATE)) if regular else None
    except (OSError, ValueError, RecursionError):
        return ""
    policy = state.get("policyName") if isinstance(state, dict) else None
    return policy if isinstance(policy, str) and _POLICY.fullmatch(policy) else ""
