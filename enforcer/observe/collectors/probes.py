"""A collector whose programs sit in the kernel: what all BPF members of the chain have in common."""

import os
from collections.abc import Callable, Sequence
from typing import Protocol

from enforcer.observe.bpf.counters import CounterSnapshot
from enforcer.observe.bpf.loader import LoadedPrograms


class Readable(Protocol):
    """The maps of a loaded program."""

    def read(self) -> CounterSnapshot: ...


class Probes:
    """Loaded programs, attached and detached together. Each of `attachments` makes one descriptor."""

    def __init__(
        self, name: str, loaded: LoadedPrograms, maps: Readable, attachments: Sequence[Callable[[], int]]
    ) -> None:
        self.name = name
        self.loaded = loaded
        self._maps = maps
        self._attachments = attachments
        self._attached: list[int] = []

    def attach(self) -> None:
        if self._attached:
            return
        try:
            for attach in self._attachments:
                self._attached.append(attach())
        except OSError:
            self.detach()
            raise

    def detach(self) -> None:
        while self._attached:
            os.close(self._attached.pop())

    def drain(self) -> CounterSnapshot:
        return self._maps.read()

    def close(self) -> None:
        self.detach()
        self.loaded.close()
