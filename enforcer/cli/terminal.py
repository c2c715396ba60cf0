"""The terminal, or what there is in its place."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console

WIDE = 200
"""Columns where no terminal says how many there are: a name that is searched for stays on one line."""


class _PipedConsole(Console):
    """Leaves it to `main` that the reader has gone away."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console() -> Console:
    """Text is shown as it is: names that others gave, as [fd00::5]:80, are no markup."""
    made = _PipedConsole(markup=False, emoji=False)
    if not made.is_terminal:
        made.width = WIDE
    return made
