"""The parts of what a request finds: what is left on the machine, what the request still needs, what its group will."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Headroom:
    """What is left for a request, by NUMA node.

    free: the mask of the CPUs that it could run on. cpu: millicores that are not requested. unused: millicores that
    are neither requested nor expected to be used. own: CPUs that could become its own, None when it shares. memory:
    bytes that are not requested. real: bytes that are free by the kernel's figures.
    """

    free: Mapping[int, int]
    cpu: Mapping[int, int]
    unused: Mapping[int, int]
    own: Mapping[int, int] | None
    memory: Mapping[int, int]
    real: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class StillNeeded:
    """Of a request: cpu, the millicores that must be free; expected, those that it will take; memory, the bytes that it
    has yet to take; hugepages, those in hugepages by page size; own, the CPUs that are to become its own.
    """

    cpu: int
    expected: int
    memory: int
    hugepages: Mapping[int, int]
    own: int = 0


@dataclass(frozen=True, slots=True)
class GroupOutlook:
    """kin: each NUMA node's share of the kin weight. rest: millicores that the rest of its group will take.
    reserved: those that other groups will, by NUMA node.
    """

    kin: Mapping[int, float]
    rest: int
    reserved: Mapping[int, int]
