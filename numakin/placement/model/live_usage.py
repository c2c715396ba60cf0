"""What is live on a machine's NUMA nodes: the kernel's own figures, which change without any placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

_Key = TypeVar("_Key")
_Figure = TypeVar("_Figure")


@dataclass(frozen=True, slots=True)
class Live:
    """By NUMA node; what is absent is not known, and stands in nobody's way.

    free_memory: bytes, with what the kernel can reclaim and without its watermarks. free_hugepages: bytes by (NUMA
    node, page size). used_cpu: millicores in use. stalled: share of time (0 to 1) that something waited for
    memory. hot: by the mask of the CPUs of a cache domain or of NUMA nodes, whether they are so busy that members who
    are confined to them are let out, and no newcomer goes there.
    """

    free_memory: Mapping[int, int] = field(default_factory=dict)
    free_hugepages: Mapping[tuple[int, int], int] = field(default_factory=dict)
    used_cpu: Mapping[int, int] = field(default_factory=dict)
    stalled: Mapping[int, float] = field(default_factory=dict)
    hot: Mapping[int, bool] = field(default_factory=dict)

    def after(self, news: Live) -> Live:
        """With the news taken over. What they don't hold stays as it was, so that whoever receives the same news holds
        the same figures.
        """
        return Live(
            {**self.free_memory, **news.free_memory},
            {**self.free_hugepages, **news.free_hugepages},
            {**self.used_cpu, **news.used_cpu},
            {**self.stalled, **news.stalled},
            {**self.hot, **news.hot},
        )

    def since(self, before: Live) -> Live:
        """What is new in it: the news that lead from `before` to it."""
        return Live(
            _new(before.free_memory, self.free_memory),
            _new(before.free_hugepages, self.free_hugepages),
            _new(before.used_cpu, self.used_cpu),
            _new(before.stalled, self.stalled),
            _new(before.hot, self.hot),
        )


NOTHING = Live()


def _new(before: Mapping[_Key, _Figure], after: Mapping[_Key, _Figure]) -> dict[_Key, _Figure]:
    return {key: figure for key, figure in after.items() if before.get(key) != figure}
