"""Whatever command of ours a document or a help text shows is one that the program takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from enforcer.cli import main as enforcer
from numakin.kubectl import options as kubectl
from numakin.kubectl.commands import COMMANDS

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])

PROGRAM = re.compile(r"(?:^|[ /])(kubectl numakin|kubectl-numakin|numakin-enforcer) (?=[a-z-])(.*)")
END = re.compile(r"\s{2,}|\s#|\s\||;")
"""What follows a command on its line: an explanation, a comment, the next command."""


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Program and arguments of each line of an indented block, a backslash at its end joining the next; and of what
    stands between backticks with an option.
    """
    joined = re.sub(r"\\\n\s*", "", text)
    for line in joined.splitlines():
        spans = [line] if line.startswith("    ") and "$ " not in line[:6] else re.findall(r"`([^`]+)`", line)
        for span in spans:
            match = PROGRAM.search(span)
            if match and (span is line or " -" in match[2]):
                yield match[1].replace("kubectl-", "kubectl "), END.split(match[2])[0]


def refused(program: str, arguments: str) -> str:
    """Why the program does not take them; empty when it does."""
    parser = kubectl.parser() if program.startswith("kubectl") else enforcer.parser()
    try:
        parser.parse_args(shlex.split(arguments.replace("...", "X")))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - each parser has its own
        return f"{program} {arguments}: {error}"
    return ""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_a_document_is_taken(document: Path) -> None:
    assert [why for command in commands(document.read_text()) if (why := refused(*command))] == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.NAME)
def test_every_example_of_a_help_text_is_taken(command: ModuleType) -> None:
    indented = re.sub("^  ", "    ", command.EXAMPLES, flags=re.MULTILINE)
    assert [why for example in commands(indented) if (why := refused(*example))] == []


def test_a_command_that_is_none_would_be_noticed() -> None:
    text = "    kubectl numakin dance   # no command\n`kubectl numakin map --colour`, `kubectl numakin map`\n"
    shown = list(commands(text))
    assert [arguments for _, arguments in shown] == ["dance", "map --colour"]
    assert all(refused(*command) for command in shown)
