"""The emulated NUMA machine: boots it, runs one command there, gives back what it printed.

The command runs as root in this repository's folder, with Debian's Python, in which the project's dependencies are
installed. Whatever is not /tmp is lost or read-only. Emulation is slow: a boot takes half a minute, so one boot
should do all that a topology is needed for, and print a line of JSON for each thing found.

NUMAKIN_VM_ARCHITECTURE=arm64 makes it a machine of that architecture, for tests that are run by hand on it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.e2e.lab.place import LAB, REPOSITORY

NUMAVM = LAB / "numavm"
ARCHITECTURE = os.environ.get("NUMAKIN_VM_ARCHITECTURE", "amd64")
TIMED_OUT, BROKEN = 124, 125
PANIC = "Kernel panic"

MOST_BOOTS = 3
"""Of one command: a kernel that QEMU 7.2 emulates panics now and then."""

LONGEST_S = 5400
"""Of a boot, by this machine's clock: what is emulated beside other work may take long."""

MOST_SHOWN = 20_000
"""Characters of what a command printed last."""

TEST_S = LONGEST_S + 300
"""Of a test that boots it."""


@dataclass(frozen=True, slots=True)
class Result:
    """status: the command's own, or TIMED_OUT, BROKEN. output: its stdout and stderr. messages: the machine's."""

    status: int
    output: str
    messages: str

    @property
    def panicked(self) -> bool:
        return self.status == BROKEN and PANIC in self.messages

    def failure(self) -> str:
        """What to show where the command should not have failed, the shortest first."""
        first, _, rest = self.messages.partition("\n")
        return f"status {self.status}, {first or 'no message'}\n{self.output[-MOST_SHOWN:]}\n{rest}"

    def records(self) -> list[dict[str, Any]]:
        """The lines of the output that are JSON objects."""
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]


def build() -> None:
    """Makes the machine's disk if it is not up to date (two minutes). Raises CalledProcessError."""
    environment = {**os.environ, "NUMAKIN_PYTHON": sys.executable}
    subprocess.run([NUMAVM / "build", "--arch", ARCHITECTURE], check=True, stdin=subprocess.DEVNULL, env=environment)


def run(
    topology: str,
    command: Sequence[str],
    *,
    systemd: bool = False,
    options: Sequence[str] = (),
    boots: int = MOST_BOOTS,
) -> Result:
    """What came of the command. Where the emulated kernel panics it runs anew in another boot, with a warning.

    topology: a name that `numavm/run --list` prints. systemd: as process 1, and with its cgroup driver; else the command is
    started by process 1 itself, which boots in two thirds of the time. options: more of `numavm/run`'s. boots: at most.
    """
    options = options if systemd else ("--bare", *options)
    result = _boot(topology, command, options)
    for _ in range(boots - 1):
        if not result.panicked:
            break
        result = _boot(topology, command, options)
    return result


def _boot(topology: str, command: Sequence[str], options: Sequence[str]) -> Result:
    machine = ["--arch", ARCHITECTURE, "--topology", topology]
    words = [*machine, "--timeout", str(LONGEST_S), "--dir", str(REPOSITORY)]
    done = subprocess.run(
        [NUMAVM / "run", *words, "--env", "PYTHONPYCACHEPREFIX=/var/cache/python", *options, "--", *command],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    result = Result(done.returncode, done.stdout, done.stderr)
    if result.panicked:
        warnings.warn(f"the emulated machine's kernel panicked:\n{result.messages}", stacklevel=3)
    return result
