"""How answers are printed: tables for people, JSON and YAML for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import yaml
from rich.table import Table
from rich.text import Text

from numakin.terminal import NO_TERMINAL_COLUMNS, console

FORMATS = ("table", "wide", "json", "yaml")

NAMED = 5
"""Names of a cluster's thousands that a line has."""


def show(answer: Any, form: str, tables: Callable[[], Iterable[Any]]) -> None:
    """Prints an answer. tables: what people see of it, made only for them."""
    if form == "json":
        json.dump(answer, sys.stdout, indent=2)
        print()
    elif form == "yaml":
        yaml.safe_dump(answer, sys.stdout, sort_keys=False, allow_unicode=True, width=NO_TERMINAL_COLUMNS)
    else:
        out = console()
        for part in tables():
            out.print(part, soft_wrap=isinstance(part, str | Text))


def table(*columns: str, right: Sequence[str] = ()) -> Table:
    """As kubectl's: no lines, capitals on top. right: columns of numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in columns:
        made.add_column(column.upper(), justify="right" if column in right else "left", overflow="fold")
    return made


def bytes_of(size: float | None) -> str:
    """As people read it, in powers of 1024; empty for None."""
    if size is None:
        return ""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def cpus_of(milli: float | None) -> str:
    """Millicores as CPUs; empty for None."""
    return "" if milli is None else f"{milli / 1000:.1f}".removesuffix(".0")


def many(count: int, thing: str) -> str:
    """3 pods, 1 pod."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def some(names: Sequence[str]) -> str:
    """The first five, and how many more there are; none for none."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (", ".join(names[:NAMED]) or "none") + more


def percent(share: float | None) -> str:
    """A share of 1; a dash for None."""
    return "-" if share is None else f"{share:.0%}"
