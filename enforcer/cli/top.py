"""`numakin-enforcer top` and `record`: what the running enforcer sees of its node's traffic."""

from __future__ import annotations

import http.client
import json
import re
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any, TextIO

from rich.console import Group
from rich.table import Table

from numakin.terminal import EVERY_S, console, follow, is_redrawn

TRAFFIC = "/api/v1/traffic"

_ADDRESS = re.compile(r"[^\s/]+:\d{1,5}")


class NoAnswerError(RuntimeError):
    """No enforcer's port answers there."""


def get(address: str, path: str) -> Any:
    """What the enforcer's port answers; NoAnswerError when it does not."""
    if not _ADDRESS.fullmatch(address):
        raise NoAnswerError(f"--metrics must be HOST:PORT, not {address!r}")
    try:
        with closing(http.client.HTTPConnection(address, timeout=5)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read()
    except (OSError, http.client.HTTPException) as error:
        why = f"{error}; is it running, with this --metrics-listen?"
        raise NoAnswerError(f"no enforcer answers at {address}: {why}") from error
    if answer.status != http.HTTPStatus.OK:
        raise NoAnswerError(f"{address}{path}: {answer.status} {text.decode(errors='replace').strip()}")
    return json.loads(text)


def top(address: str, *, as_json: bool) -> int:
    """A table that follows the traffic until Ctrl-C; one answer as JSON, or one table where there is no terminal."""
    try:
        if as_json:
            print(json.dumps(get(address, TRAFFIC), indent=2))
        else:
            _show(address)
    except NoAnswerError as error:
        print(f"numakin-enforcer: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


def _show(address: str) -> None:
    out = console()
    if is_redrawn(out):
        follow(out, lambda: get(address, TRAFFIC), lambda answer: _table(answer, out.height - 8), NoAnswerError)
    out.print(_table(get(address, TRAFFIC), 40))


def record(address: str, file: Path, seconds: float) -> int:
    """Appends each window as a line of JSON until the seconds are over, or until Ctrl-C when they are 0: then what the
    observer has kept from before, too. With seconds the latest of that, only where no window ended meanwhile.
    """
    tape, until = Tape(address), time.monotonic() + seconds if seconds else float("inf")
    written = 0
    try:
        with file.open("a") as out:
            kept = tape.newer()
            written += 0 if seconds else _append(out, kept)
            while (left := until - time.monotonic()) > 0:
                time.sleep(min(EVERY_S, left))
                written += _append(out, tape.newer())
            written += 0 if written else _append(out, kept[-1:])
    except (NoAnswerError, OSError) as error:
        print(f"numakin-enforcer: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    print(f"{file}: {written} windows recorded; replay it with `numakin-enforcer run --replay {file}`")
    return 0


def _append(out: TextIO, lines: list[str]) -> int:
    """How many."""
    out.writelines(f"{line}\n" for line in lines)
    out.flush()
    return len(lines)


class Tape:
    """Windows as they come. The observer may be away between two of them, and another one go on: that is said."""

    def __init__(self, address: str) -> None:
        self.windows = self.last = 0
        """How many were recorded in all, and the latest one's number."""
        self._address = address
        self._session, self._away = "", False

    def newer(self) -> list[str]:
        """The lines since the last time. NoAnswerError until the observer has answered once."""
        try:
            answer = self._asked()
        except NoAnswerError as error:
            if not self._session:
                raise
            if not self._away:
                print(f"numakin-enforcer: {error}; waiting for it", file=sys.stderr)
            self._away = True
            return []
        self._away = False
        lines = [str(window["line"]) for window in answer["windows"]]
        self.last = answer["windows"][-1]["number"] if lines else self.last
        self.windows += len(lines)
        return lines

    def _asked(self) -> Any:
        answer = get(self._address, f"/api/v1/windows?since={self.last}")
        if answer["session"] == self._session:
            return answer
        if self._session:
            print("numakin-enforcer: the observer was started again; its windows follow", file=sys.stderr)
        # Its numbers begin anew: what was asked for may be more than there is.
        self._session, self.last = answer["session"], 0
        return get(self._address, "/api/v1/windows?since=0")


def _table(answer: dict[str, Any], rows: int) -> Group:
    left = f"{answer['unattributed_bytes']} bytes unattributed, {answer['lost_bytes']} lost"
    unseen = [f"{row['containers']} containers can't be told apart: {row['reason']}" for row in answer["unseen"]]
    title = f"traffic by {answer['collector']}: {answer['edges_in_all']} edges, {left}"
    passing = [f"{pod} passes on what it receives: who talks through it is not seen" for pod in answer["relays"]]
    table = Table()
    for name in ("from", "to", "kind"):
        table.add_column(name)
    for name in ("bytes/s", "messages/s", "weight"):
        table.add_column(name, justify="right")
    for edge in answer["edges"][: max(1, rows)]:
        rates = (f"{edge[key]:,.1f}" for key in ("bytes_per_s", "messages_per_s", "weight"))
        table.add_row(edge["source"], edge["target"], edge["kind"], *rates)
    return Group(title, table, *unseen, *passing)
