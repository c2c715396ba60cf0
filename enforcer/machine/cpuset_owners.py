"""Who else may set the cpusets of containers on this node, by its processes.

The runtime tells no plugin of the others. One that it launched has its name and index in its environment; the others
are known by their programs. What is found is a hint to people: nothing is decided by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from enforcer.machine.kubelet import managers

PROGRAMS = {
    "nri-resource-policy-topology-aware": "nri-plugins' topology-aware",
    "nri-resource-policy-balloons": "nri-plugins' balloons",
    "dracpu": "dra-driver-cpu",
    "koordlet": "Koordinator's koordlet",
    "katalyst-agent": "Katalyst's agent",
    "crane-agent": "Crane's agent",
}
"""What sets cpusets beside the kubelet, by the name of its program."""

INDEX_FLAG = "nri-plugin-index"
"""How the option ends by which such programs are given their NRI index."""

LONGEST = 1 << 16
"""Bytes of a process's command line or environment that are read."""

_NAME, _PLUGIN_INDEX = re.compile(r"[a-zA-Z0-9_.+-]{1,63}"), re.compile(r"[0-9]{2}|\?\?")
"""What a plugin may be called by. Any container's environment is read, and shown at an operator's terminal."""


def cpuset_owners(procfs: Path, our_name: str = "numakin") -> tuple[str, ...]:
    """In words, each once. our_name: as an NRI plugin."""
    kubelet = managers(procfs)
    static = ("the kubelet (cpuManagerPolicy static)",) if kubelet is not None and kubelet.cpu == "static" else ()
    return tuple(dict.fromkeys((*static, *_plugins(procfs, our_name))))


def _plugins(procfs: Path, our_name: str) -> Iterator[str]:
    for process in sorted(
        (entry for entry in procfs.iterdir() if entry.name.isdecimal()), key=lambda entry: entry.name
    ):
        environment = dict(field.partition("=")[::2] for field in _strings(process / "environ"))
        name, index = environment.get("NRI_PLUGIN_NAME", ""), environment.get("NRI_PLUGIN_IDX", "??")
        if _NAME.fullmatch(name) and _PLUGIN_INDEX.fullmatch(index) and name != our_name:
            yield f"an NRI plugin that the runtime launched: {index}-{name}"
        arguments = _strings(process / "cmdline")
        known = PROGRAMS.get(arguments[0].rpartition("/")[2]) if arguments else None
        if known is not None:
            yield f"{known}{_index(arguments)}"


def _index(arguments: list[str]) -> str:
    for at, argument in enumerate(arguments):
        flag, _, value = argument.partition("=")
        if flag.startswith("-") and flag.endswith(INDEX_FLAG):
            index = value or next(iter(arguments[at + 1 :]), "??")
            return f" (NRI index {index})" if _PLUGIN_INDEX.fullmatch(index) else ""
    return ""


def _strings(file: Path) -> list[str]:
    """Of a process that may have ended, or be another user's: none then."""
    try:
        with file.open("rb") as opened:
            return opened.read(LONGEST).decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return []
