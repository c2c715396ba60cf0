"""What a target is, and where its inputs are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """run: raises for a fault. seeds: valid inputs, from which others are made."""

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]

    def corpus(self) -> list[bytes]:
        """The seeds, and what earlier runs found worth keeping (corpus/NAME)."""
        return [*self.seeds(), *(path.read_bytes() for path in sorted((CORPUS / self.name).glob("*")))]


def must(holds: object, promise: str) -> None:
    """Not `assert`: a target also runs with -O."""
    if not holds:
        raise BrokenPromise(promise)


class BrokenPromise(Exception):
    """A parser did what it says that it never does."""


def pieces(data: bytes) -> list[bytes]:
    """The input cut where its own bytes say, for parsers that take a stream in any pieces."""
    made, at = [], 0
    while at < len(data):
        size = 1 + data[at] % 61
        made.append(data[at : at + size])
        at += size
    return made
