"""Sets of CPU ids and of NUMA node ids, in and out of the kernel's list format (`0-3,8`).

One int is the whole set (bit i = id i), so that union, intersection and size are single operations however many CPUs a
machine has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from numakin.placement.model.errors import BadIdList

LARGEST_ID = 16_383
"""The largest id accepted; Linux' own limits are CONFIG_NR_CPUS <= 8192 and MAX_NUMNODES <= 1024."""

BEYOND = LARGEST_ID + 1

LONGEST_LIST = 65_536
"""The most characters of a list: any set is written in as many, four for each id at most (pairs with a gap between)."""

_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+)/([0-9]+))?)?")


@dataclass(frozen=True, slots=True)
class IdSet:
    """An immutable set of small non-negative ids."""

    mask: int = 0

    def __post_init__(self) -> None:
        if self.mask >> BEYOND:  # -1 of a negative one
            raise BadIdList(f"ids must be within 0..{LARGEST_ID}")

    @classmethod
    def of(cls, ids: Iterable[int]) -> Self:
        mask = 0
        for id_ in ids:
            if not 0 <= id_ <= LARGEST_ID:
                raise BadIdList(f"id {id_} is not within 0..{LARGEST_ID}")
            mask |= 1 << id_
        return cls(mask)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads the kernel's list format: ids, `a-b` and `a-b:used/group` between commas; "" is the empty set."""
        if len(text) > LONGEST_LIST:
            raise BadIdList(f"a list of ids has at most {LONGEST_LIST} characters, not {len(text)}")
        mask = 0
        stripped = text.strip()
        for part in stripped.split(",") if stripped else ():
            mask |= _range_mask(part.strip(), text)
        return cls(mask)

    def __str__(self) -> str:
        """The kernel's list format, ascending, ranges joined."""
        return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in self._runs())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __iter__(self) -> Iterator[int]:
        rest = self.mask
        while rest:
            low = rest & -rest
            yield low.bit_length() - 1
            rest ^= low

    def __len__(self) -> int:
        return self.mask.bit_count()

    def __bool__(self) -> bool:
        return self.mask != 0

    def __contains__(self, id_: int) -> bool:
        return id_ >= 0 and bool(self.mask >> id_ & 1)

    def __or__(self, other: Self) -> Self:
        return type(self)(self.mask | other.mask)

    def __and__(self, other: Self) -> Self:
        return type(self)(self.mask & other.mask)

    def __sub__(self, other: Self) -> Self:
        return type(self)(self.mask & ~other.mask)

    def __le__(self, other: Self) -> bool:
        """Whether every id of this set is in the other."""
        return self.mask & ~other.mask == 0

    def isdisjoint(self, other: Self) -> bool:
        return self.mask & other.mask == 0

    @property
    def lowest(self) -> int:
        """The smallest id; ValueError when empty."""
        if not self.mask:
            raise ValueError("the empty set has no lowest id")
        return (self.mask & -self.mask).bit_length() - 1

    def _runs(self) -> Iterator[tuple[int, int]]:
        """(first, last) of each run of ids, found by arithmetic on the mask: sets are written out on every decision."""
        rest, base = self.mask, 0
        while rest:
            gap = (rest & -rest).bit_length() - 1
            rest >>= gap
            length = (~rest & rest + 1).bit_length() - 1
            yield base + gap, base + gap + length - 1
            rest >>= length
            base += gap + length


class CpuSet(IdSet):
    """An immutable set of logical CPU ids."""

    __slots__ = ()


class NumaSet(IdSet):
    """An immutable set of NUMA node ids (a `mems` list, when it names memory)."""

    __slots__ = ()


def _range_mask(part: str, whole: str) -> int:
    match = _RANGE.fullmatch(part)
    if match is None:
        raise BadIdList(f"{_shown(whole)} is not a list of ids: {_shown(part)} is neither an id nor a range")
    if any(len(number) > len(str(LARGEST_ID)) for number in match.groups() if number):
        raise BadIdList(f"{_shown(whole)} holds an id over {LARGEST_ID}")
    first = int(match[1])
    last = int(match[2]) if match[2] else first
    if last < first:
        raise BadIdList(f"{_shown(whole)} is not a list of ids: {part} runs backwards")
    if last > LARGEST_ID:
        raise BadIdList(f"{_shown(whole)} holds an id over {LARGEST_ID}")
    if match[3] is None:
        return (1 << last + 1) - (1 << first)
    used, group = int(match[3]), int(match[4])
    if not 0 < used <= group:
        raise BadIdList(f"{_shown(whole)} is not a list of ids: {part} takes {used} of every {group}")
    return _every(used, group, last - first + 1) << first


def _every(used: int, group: int, length: int) -> int:
    """The first `used` bits of every `group` among `length`; by doubling, so that a long range costs little."""
    mask, width = (1 << used) - 1, group
    while width < length:
        mask |= mask << width
        width *= 2
    return mask & (1 << length) - 1


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
