"""The shape of everything that counts traffic."""

from typing import Protocol

from enforcer.observe.bpf.counters import CounterSnapshot


class Collector(Protocol):
    """Counts from `attach` to `detach`, as often as wanted; what was counted before stays.

    All of a collector's attachments are descriptors of this process: they go when it goes, however it ends.
    """

    @property
    def name(self) -> str:
        """The hook in use, as shown in logs and metrics."""

    def attach(self) -> None:
        """Begin to count. OSError or Refused if the kernel does not let it; then nothing stays attached."""

    def detach(self) -> None:
        """Stop counting. Harmless if not attached."""

    def drain(self) -> CounterSnapshot:
        """Cumulative counts so far, attached or not."""

    def close(self) -> None:
        """Detach and give back every descriptor."""
