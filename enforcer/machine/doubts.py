"""Facts about a machine that could not be had: each costs itself alone, and is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from enforcer.machine.errors import MachineError

T = TypeVar("T")

MOST = 8
"""Of a machine's doubts: a bad cache file is bad for each of its CPUs."""


class Doubts:
    """Collects while a machine is read."""

    def __init__(self) -> None:
        self._sentences: list[str] = []

    def add(self, sentence: str) -> None:
        self._sentences.append(sentence)

    def fact(self, read: Callable[[], T], otherwise: T) -> T:
        """What `read` finds, `otherwise` where it raises."""
        try:
            return read()
        except MachineError as error:
            self.add(str(error))
            return otherwise

    def sentences(self) -> tuple[str, ...]:
        """One sentence each, the first ones and how many more."""
        more = len(self._sentences) - MOST
        sentences = self._sentences[:MOST]
        return (*sentences, f"and {more} more of that kind") if more > 0 else tuple(sentences)
