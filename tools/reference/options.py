"""The page of every program's options, as their own parsers have them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from enforcer.cli import main as enforcer
from extender import config as extender
from numakin.kubectl import options as kubectl

TOP = """\
# Options

Made from the code: `make reference`. Options of `numakin-extender` and of `numakin-enforcer run` are also read from the
environment (`NUMAKIN_` and the name in capitals) and from a TOML file (the name without the leading dashes): flags win,
then the environment, then the file.
"""


def page(_before: str) -> str:
    """The whole page."""
    return "\n".join([TOP, *_program(extender._parser()), *_program(enforcer.parser()), *_program(kubectl.parser())])


def _program(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"## {parser.prog}\n\n{_text(parser.description)}\n"
    yield from _table(parser)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            for name, command in action.choices.items():
                yield f"### {parser.prog} {name}\n\n{_text(helps.get(name))}\n"
                yield from _table(command)


def _table(parser: argparse.ArgumentParser) -> Iterator[str]:
    rows = [
        action
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)
    ]
    if rows:
        yield "| option | meaning |"
        yield "|---|---|"
        yield from (f"| {_names(parser, action)} | {_text(_help(parser, action))} |" for action in rows)
        yield ""


def _names(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    value = parser._get_formatter()._format_args(action, action.dest.upper()) if action.nargs != 0 else ""
    if not action.option_strings:
        return f"`{value}`"
    return ", ".join(f"`{name} {value}`" if value else f"`{name}`" for name in action.option_strings)


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""


def _text(text: str | None) -> str:
    return (text or "").replace("|", "\\|").strip()
