"""What a command can fail by, each with its exit code and one line for the person at the terminal."""

from __future__ import annotations

BAD_NEWS = 1
"""Exit code: answered, and the answer is no: not found, a finding that is bad, nothing to conclude."""


class CommandError(Exception):
    """A failure that is worded for people. `code` is the exit code."""

    code = BAD_NEWS


class UsageError(CommandError):
    """Wrong arguments or a file that can't be used."""

    code = 2


class Unanswered(CommandError):
    """There was no answer, or it was not allowed."""

    code = 3
