"""What is live on a machine's NUMA nodes: the kernel's own figures, which change without any placement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import TypeVar

Devices = tuple[tuple[str, int], ...]
"""How many of each resource, by name."""

_Key = TypeVar("_Key")
_Figure = TypeVar("_Figure")


@dataclass(frozen=True, slots=True)
class Live:
    """By NUMA node; what is absent is not known, and hinders no placement.

    free_memory: bytes, with what the kernel can reclaim and without its watermarks. free_hugepages: bytes by (NUMA
    node, page size). used_cpu: millicores in use. stalled: share of time (0 to 1) that something waited for
    memory. hot: by the mask of the CPUs of a cache domain or of NUMA nodes, whether they are so busy that members who
    are confined to them are let out, and no newcomer goes there. devices: by (resource, mask of NUMA nodes), how many
    of a device plugin's devices near to these are free; of mask 0 it is not known what they are near to.
    """

    free_memory: Mapping[int, int] = field(default_factory=dict)
    free_hugepages: Mapping[tuple[int, int], int] = field(default_factory=dict)
    used_cpu: Mapping[int, int] = field(default_factory=dict)
    stalled: Mapping[int, float] = field(default_factory=dict)
    hot: Mapping[int, bool] = field(default_factory=dict)
    devices: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def after(self, news: Live) -> Live:
        """With the news taken over. What they don't hold stays as it was, so that each end that receives the same news
        holds the same figures.
        """
        return Live(*({**old, **new} for old, new in zip(_figures(self), _figures(news), strict=True)))

    def less_devices(self, taken: Iterable[tuple[int, Devices]]) -> Live:
        """What is left once pods on NUMA nodes, by their mask, have got so many devices of each resource: near to them,
        while there are such.
        """
        free = dict(self.devices)
        for home, asked in taken:
            for resource, count in asked:
                left = count
                for key in sorted((key for key in free if key[0] == resource), key=lambda key: not key[1] & home):
                    given = min(left, free[key])
                    free[key], left = free[key] - given, left - given
        return replace(self, devices=free)

    def since(self, before: Live) -> Live:
        """What is new in it: the news that lead from `before` to it."""
        return Live(*map(_new, _figures(before), _figures(self)))


NOTHING = Live()

_figures = attrgetter(*(figure.name for figure in fields(Live)))


def devices_near(devices: Mapping[tuple[str, int], int], known: int) -> dict[tuple[str, int], int]:
    """Free devices by resource and mask of NUMA nodes, with these NUMA nodes alone (a mask): a plugin may name
    others.
    """
    near: dict[tuple[str, int], int] = {}
    for (resource, mask), free in devices.items():
        key = resource, mask & known
        near[key] = near.get(key, 0) + free
    return near


def _new(before: Mapping[_Key, _Figure], after: Mapping[_Key, _Figure]) -> dict[_Key, _Figure]:
    return {key: figure for key, figure in after.items() if before.get(key) != figure}
