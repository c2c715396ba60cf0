"""Runs inside the emulated machine: several of this folder's programs, one after the other, since each boot takes minutes.

    python3 -m tests.e2e.guest.stages MODULE...

Each is a process of its own, forked from one that has imported them all, and leaves the machine's containerd running,
without pods, to the next. After its output comes a line of JSON with its name and its status. One that failed does not keep
the next from running.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module

from tests import forked
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
    programs = {module: import_module(module).main for module in modules}
    forked.prepare("numakin-enforcer")
    failed = 0
    for module, program in programs.items():
        stage = multiprocessing.get_context("fork").Process(target=_run, args=(program,))
        stage.start()
        stage.join()
        print(json.dumps({ENDED: module, "status": stage.exitcode}), flush=True)
        failed += stage.exitcode != 0
    forked.end()
    return failed


def _run(program: Callable[[], None]) -> None:
    try:
        program()
    finally:
        if SOCKET.exists():
            with closing(kubelet()) as left:
                left.end_all_pods()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
