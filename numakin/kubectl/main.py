"""The command line of `kubectl numakin`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from signal import SIGINT
from typing import NoReturn

from numakin.kubectl.errors import CommandError, UsageError
from numakin.kubectl.options import parser
from numakin.kubectl.session import Session
from numakin.process.standard_output import cut_off, takes_any_text
from numakin.terminal import legible

INTERRUPTED = 128 + SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 the answer is bad news, 2 wrong use, 3 no answer."""
    takes_any_text()
    try:
        given = parser().parse_args(arguments)
        if not given.command:
            raise UsageError("no command is given; see kubectl numakin --help")
        code: int = given.run(given, Session(given))
        sys.stdout.flush()
    except CommandError as bad:
        print(f"kubectl numakin: {legible(str(bad))}", file=sys.stderr)
        return bad.code
    except BrokenPipeError:
        return cut_off()
    except KeyboardInterrupt:
        _end_at_once()
    return code


def _end_at_once() -> NoReturn:
    """Without Python's own shutdown: threads still wait for answers, and to end one that gets its own meanwhile has
    aborted the process (2 of 21 interrupted recordings, Python 3.11).
    """
    sys.stdout.flush()
    os._exit(INTERRUPTED)
