"""The terminal, or what there is in its place, as the command lines of both halves print to it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NoReturn

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RichCast
from rich.segment import Segment

NO_TERMINAL_COLUMNS = 240
"""Where no terminal says how wide it is: names are not broken, for grep."""

_CONTROLS = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def legible(text: str) -> str:
    """Without what a terminal would obey: some of it was written by whoever may create a pod."""
    return text.translate(_CONTROLS)


class _LegibleConsole(Console):
    """Obeys nothing that stands in the text, and leaves it to `main` that the reader has gone away."""

    def render(
        self, renderable: ConsoleRenderable | RichCast | str, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(legible(segment.text), segment.style)

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console() -> Console:
    """The terminal. Elsewhere there is no colour, and lines are long. Text is shown as it is: the cluster's names, as
    [fd00::5]:80, are no markup.
    """
    made = _LegibleConsole(highlight=False, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = NO_TERMINAL_COLUMNS
    return made
