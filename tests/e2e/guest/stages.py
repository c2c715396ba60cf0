"""Runs inside the emulated machine: several of this folder's programs, one after the other, since each boot takes minutes.

    python3 -m tests.e2e.guest.stages MODULE...

Each is a process of its own and leaves the machine's containerd running, without pods, to the next. After its output
comes a line of JSON with its name and its status. One that failed does not keep the next from running.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

from tests.e2e.guest.runtime import SOCKET, kubelet

ENDED = "stage ended"
"""Key of the line's program."""


def outputs(text: str) -> dict[str, tuple[int, str]]:
    """Of each program that came to its end: its status and what it printed."""
    return dict(_ended(text))


def _ended(text: str) -> Iterator[tuple[str, tuple[int, str]]]:
    printed: list[str] = []
    for line in text.splitlines():
        if line.startswith(f'{{"{ENDED}"'):
            record = json.loads(line)
            yield record[ENDED], (record["status"], "\n".join(printed))
            printed.clear()
        else:
            printed.append(line)


def main(modules: list[str]) -> int:
    """How many failed."""
    failed = 0
    for module in modules:
        status = subprocess.run([sys.executable, "-m", module], check=False).returncode
        if SOCKET.exists():
            with closing(kubelet()) as left:
                left.end_all_pods()
        print(json.dumps({ENDED: module, "status": status}), flush=True)
        failed += status != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
