"""Whether CPUs or memory have gone or come since the machine was read.

A poll of a few small files: the kernel's uevents come over a netlink socket of the host's network namespace alone, and
one event for each CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from enforcer.machine import formats
from enforcer.machine.errors import MachineError
from enforcer.machine.tree import Tree

LISTS = (
    "devices/system/cpu/online",
    "devices/system/node/online",
    "devices/system/node/has_memory",
    "devices/system/node/has_normal_memory",
)

MEMORY_EVERY = 10
"""Polls from one reading of the NUMA nodes' sizes to the next: the kernel counts all pages of a NUMA node for it."""

NOTABLE_MEMORY = 64
"""A NUMA node's memory has changed when it did by more than a 64th: less is a balloon's, or the kernel's own. The
smallest memory block that goes offline (128 MiB) is a 64th of 8 GiB.
"""


SETTLING = 2
"""Polls after a change that say so again: one change is many files, which are not written at one time."""


class MachineWatch:
    """Knows what was there at the last `changed`, first when it is made."""

    def __init__(self, sysfs: Path) -> None:
        self._tree = Tree(sysfs)
        self._polls = self._settling = 0
        self._lists = self._read_lists()
        self._memory = self._read_memory()

    def changed(self) -> bool:
        """Whether something has, since the last call or just before it. What can't be read has not."""
        self._polls += 1
        try:
            lists = self._read_lists()
            due = self._polls % MEMORY_EVERY == 0 or lists != self._lists
            memory = self._read_memory() if due else self._memory
        except MachineError:
            return False
        if lists != self._lists or not _alike(self._memory, memory):
            self._lists, self._memory, self._settling = lists, memory, SETTLING
            return True
        settling, self._settling = self._settling > 0, max(0, self._settling - 1)
        return settling

    def forget(self) -> None:
        """The next call says yes: what was found could not be taken over."""
        self._lists = ()

    def _read_lists(self) -> tuple[str | None, ...]:
        return tuple(map(self._tree.text, LISTS))

    def _read_memory(self) -> Mapping[int, int]:
        nodes = self._tree.at("devices/system/node")
        sizes = {number: nodes.parsed(f"node{number}/meminfo", _total) for number in nodes.numbered("node")}
        return {number: size for number, size in sizes.items() if size is not None}


def _total(text: str) -> int:
    return formats.meminfo(text)["MemTotal"]


def _alike(before: Mapping[int, int], now: Mapping[int, int]) -> bool:
    return before.keys() == now.keys() and all(
        abs(size - before[number]) * NOTABLE_MEMORY <= before[number] for number, size in now.items()
    )
