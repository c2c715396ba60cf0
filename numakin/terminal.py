"""The terminal, or what there is in its place, as the command lines of both halves print to it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from typing import NoReturn, TypeVar

from rich.console import Console, ConsoleOptions, ConsoleRenderable, Group, RenderableType, RichCast
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

NO_TERMINAL_COLUMNS = 1 << 20
"""Where no terminal says how wide it is: programs read what is written, and no row is folded or cut short."""

EVERY_S = 2.0
"""Seconds between two looks at what changes."""

T = TypeVar("T")

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


def console(*, stderr: bool = False) -> Console:
    """The terminal, at standard output or error. Elsewhere there is no colour unless FORCE_COLOR asks for it, and lines
    are as long as what stands in them. Text is shown as it is: the cluster's names, as [fd00::5]:80, are no markup.
    """
    made = _LegibleConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not made.file.isatty() and "COLUMNS" not in os.environ:
        made.width = NO_TERMINAL_COLUMNS
    return made


def is_redrawn(out: Console) -> bool:
    """Whether what stands there can be replaced: not in a pipe, which FORCE_COLOR makes no terminal, nor where TERM is
    dumb.
    """
    return out.is_interactive and out.file.isatty()


def follow(
    out: Console, ask: Callable[[], T], drawn: Callable[[T], RenderableType], unanswered: type[Exception]
) -> NoReturn:
    """Asks again and again, and draws what is answered over what was there, until ^C or SIGTERM, as by `timeout`, which
    leave the terminal as it was. Where no answer comes the last one stays, and it is said; only the first has to come.
    """
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    answer, at, missing = ask(), time.time(), ""
    with Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            live.update(Group(*([Text(missing, "red")] if missing else []), drawn(answer)), refresh=True)
            time.sleep(EVERY_S)
            try:
                answer, at, missing = ask(), time.time(), ""
            except unanswered as error:
                missing = f"{error}; this is as of {time.strftime('%X', time.localtime(at))}"
