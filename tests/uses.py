"""A program's command line, used again and again: its modules are imported once, and each use is a process of its own.

python -m tests.uses MODULE     reads a use as JSON per line, writes what came of it
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Self

from lab.standins.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Ended:
    """status: None for one that was still running, and was killed."""

    status: int | None
    output: str

    @property
    def lines(self) -> list[str]:
        return self.output.splitlines()


class Program:
    """A context manager. module: the one with main()."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __enter__(self) -> Self:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMAKIN_", "KUBE"))}
        command = [sys.executable, "-m", "tests.uses", self._module]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._process.stdout.close()

    def use(self, *arguments: str, **environment: str) -> Ended:
        print(json.dumps([arguments, environment]), file=self._process.stdin, flush=True)
        return Ended(**json.loads(self._process.stdout.readline()))


def main(name: str) -> None:
    module = importlib.import_module(name)
    for line in sys.stdin:
        arguments, environment = json.loads(line)
        with tempfile.TemporaryFile() as output:
            pid = os.fork()
            if pid == 0:
                _run(module, arguments, environment, output.fileno())
            status = _ended(pid)
            output.seek(0)
            print(json.dumps({"status": status, "output": output.read().decode(errors="replace")}), flush=True)


def _run(module: ModuleType, arguments: list[str], environment: dict[str, str], output: int) -> None:
    """In the child: as `python -m MODULE ARGUMENTS` would end."""
    os.setsid()
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(environment)
    sys.argv = [sys.argv[1], *arguments]
    status = 1
    try:
        status = module.main() or 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
        if isinstance(left.code, str):
            print(left.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - as Python itself
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _ended(pid: int) -> int | None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


if __name__ == "__main__":
    main(sys.argv[1])
