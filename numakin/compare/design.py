"""Which ways are compared with which: known before the first run, so that nothing is chosen by its result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Design:
    """ways: in the order in which they are shown. pairs: ours and theirs of each ratio. control: a way and the same
    once more, whose ratio is noise.
    """

    ways: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    control: tuple[str, str]
