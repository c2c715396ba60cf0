"""The page of every program's options, as their own parsers have them; what several commands take is told once."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from enforcer.cli import main as enforcer
from extender import config as extender
from numakin.kubectl import options as kubectl

TOP = """\
# Options

Made from the code: `make reference`. Options of `numakin-extender` and of `numakin-enforcer run` are also read from the
environment (`NUMAKIN_` and the name in capitals) and from a TOML file (the name without the leading dashes). Flags win,
then the environment, then the file. Every program has `--version` and `--help`.
"""

COMMON = 4
"""Commands of one program from which on an option is told for all of them."""

WHOLE = 5
"""Options from which on those of another command are told by its name."""

Row = str
Rows = Sequence[Row]


def page(_before: str) -> str:
    """The whole page."""
    told: dict[str, Rows] = {}
    parsers = extender._parser(), enforcer.parser(), kubectl.parser()
    return "\n".join([TOP, *(line for parser in parsers for line in _program(parser, told))])


def _program(parser: argparse.ArgumentParser, told: dict[str, Rows]) -> Iterator[str]:
    """told: the rows of each command so far, by its whole name."""
    yield f"## {parser.prog}\n\n{_text(parser.description)}\n"
    yield from _table(_rows(parser))
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: _text(choice.help) for choice in action._choices_actions}
            yield from _commands(parser.prog, helps, action.choices, told)


def _commands(
    program: str, helps: Mapping[str, str], parsers: Mapping[str, argparse.ArgumentParser], told: dict[str, Rows]
) -> Iterator[str]:
    counts = Counter(row for command in parsers.values() for row in _rows(command))
    common = [row for row in counts if counts[row] >= COMMON]
    if common:
        without = [name for name, command in parsers.items() if not set(common) <= {*_rows(command)}]
        but = f" but {', '.join(without)}" if without else ""
        yield f"Every command{but} has:\n"
        yield from _table(common)
    for name, command in parsers.items():
        rows = [row for row in _rows(command) if row not in common]
        yield f"### {program} {name}\n\n{helps.get(name, '')}\n"
        other = next((other for other, theirs in told.items() if len(theirs) >= WHOLE and {*theirs} <= {*rows}), "")
        if other:
            yield f"The options of `{other}`{', and:' if len(rows) > len(told[other]) else '.'}\n"
        told[f"{program} {name}"] = rows
        yield from _table([row for row in rows if row not in told.get(other, ())])


def _rows(parser: argparse.ArgumentParser) -> Rows:
    return [
        f"| {_names(parser, action)} | {_text(_help(parser, action))} |"
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction | argparse._VersionAction)
        if action.help != argparse.SUPPRESS
    ]


def _table(rows: Rows) -> Iterator[str]:
    if rows:
        yield "| option | meaning |"
        yield "|---|---|"
        yield from rows
        yield ""


def _names(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    value = parser._get_formatter()._format_args(action, action.dest.upper()) if action.nargs != 0 else ""
    if not action.option_strings:
        return f"`{value}`"
    return ", ".join(_text(f"`{name} {value}`" if value else f"`{name}`") for name in action.option_strings)


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""


def _text(text: str | None) -> str:
    return (text or "").replace("|", "\\|").strip()
