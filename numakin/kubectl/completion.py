"""What may come next on the command line, for kubectl, which asks a program called kubectl_complete-numakin.

It speaks the protocol of kubectl's own completion (Cobra's): a line for each word that may come, then :DIRECTIVE.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from numakin.kubectl.options import parser

NO_FILES, FILES = 4, 0
"""Cobra's directives: whether the shell offers files where no word is."""

ON_DISK = ("FILE", "DIR")
"""What help calls a value that is a file's or a folder's name."""


def main() -> int:
    words, directive = completed(sys.argv[1:])
    print(*words, f":{directive}", sep="\n")
    return 0


def completed(words: Sequence[str]) -> tuple[list[str], int]:
    """The words that may stand in place of the last one, which is what was typed of it so far; and the directive."""
    *before, begun = words or [""]
    program = parser()
    commands = _commands(program)
    chosen = next((word for word in before if word in commands), "")
    own = commands.get(chosen, program)
    option = next((action for action in own._actions if before and before[-1] in action.option_strings), None)
    if option is not None and option.nargs is None:
        choices = [str(choice) for choice in option.choices or ()]
        return [word for word in choices if word.startswith(begun)], FILES if option.metavar in ON_DISK else NO_FILES
    if not chosen:
        offered = [*commands, *_options(program)] if begun.startswith("-") or not before else [*commands]
        return [word for word in offered if word.startswith(begun)], NO_FILES
    offered = (
        [*_options(own)] if begun.startswith("-") else ["pod"] if chosen == "explain" and before[-1] == chosen else []
    )
    named = not begun.startswith("-") and _takes_file(own)
    return [word for word in offered if word.startswith(begun)], FILES if named else NO_FILES


def _commands(program: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in program._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _options(of: argparse.ArgumentParser) -> Iterator[str]:
    for action in of._actions:
        yield from (name for name in action.option_strings if name.startswith("--"))


def _takes_file(of: argparse.ArgumentParser) -> bool:
    """Whether what is named without an option is a file."""
    return any(action.metavar in ON_DISK for action in of._actions if not action.option_strings)
