"""`numakin-enforcer top` and `record`: what the running enforcer sees of its node's traffic."""

from __future__ import annotations

import http.client
import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

WIDE = 200
"""Columns where no terminal says how many there are: names are not broken for whoever greps."""

EVERY_S = 2.0
"""Seconds between two looks."""


class NoAnswerError(RuntimeError):
    """No enforcer's port answers there."""


def get(address: str, path: str) -> Any:
    """What the enforcer's port answers; NoAnswerError when it does not."""
    connection = http.client.HTTPConnection(address, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswerError(f"no enforcer answers at {address}: {error}") from error
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise NoAnswerError(f"{address}{path}: {answer.status} {text.decode(errors='replace').strip()}")
    return json.loads(text)


def top(address: str, *, as_json: bool) -> int:
    """A table that follows the traffic until Ctrl-C; one answer as JSON, or one table where nobody looks."""
    try:
        if as_json:
            print(json.dumps(get(address, "/api/v1/traffic"), indent=2))
            return 0
        console = Console()
        if not console.is_terminal:
            console.width = WIDE
            console.print(_table(get(address, "/api/v1/traffic"), 40))
            return 0
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                live.update(_table(get(address, "/api/v1/traffic"), console.height - 8), refresh=True)
                time.sleep(EVERY_S)
    except NoAnswerError as error:
        print(f"numakin-enforcer: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def record(address: str, file: Path, seconds: float) -> int:
    """Appends each window as a line of JSON until the seconds are over, or until Ctrl-C when they are 0."""
    last, until = 0, time.monotonic() + seconds if seconds else float("inf")
    try:
        with file.open("a") as out:
            while time.monotonic() < until:
                for one in get(address, f"/api/v1/windows?since={last}")["windows"]:
                    out.write(one["line"] + "\n")
                    out.flush()
                    last = one["number"]
                time.sleep(min(EVERY_S, max(0.0, until - time.monotonic())))
    except (NoAnswerError, OSError) as error:
        print(f"numakin-enforcer: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    print(f"{file}: recorded up to window {last}; replay it with `numakin-enforcer run --replay {file}`")
    return 0


def _table(answer: dict[str, Any], rows: int) -> Table:
    left = f"{answer['unattributed_bytes']} bytes unattributed, {answer['lost_bytes']} lost"
    table = Table(title=f"traffic by {answer['collector']}: {answer['edges_in_all']} edges, {left}")
    for name in ("from", "to", "kind"):
        table.add_column(name)
    for name in ("bytes/s", "messages/s", "weight"):
        table.add_column(name, justify="right")
    for edge in answer["edges"][: max(1, rows)]:
        rates = (f"{edge[key]:,.1f}" for key in ("bytes_per_s", "messages_per_s", "weight"))
        table.add_row(edge["source"], edge["target"], edge["kind"], *rates)
    return table
