"""Builds, once for all runs, what tests of runtimes start: root folders of Debian (20 s each), and the emulated machine (two
minutes).

    python -m tests.e2e.lab.built [emulated]

Before tests run side by side: beside them it takes twenty times as long, and a test waits for it. emulated: the machine too.
What can't be built is said here, and its tests are skipped by name.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

from tests.e2e.lab import place, vm
from tests.e2e.lab.runtimes import installations


def main(asked: Sequence[str]) -> None:
    for what, lacking, build in _wanted(emulated="emulated" in asked):
        if lacking:
            print(f"{what}: {lacking}", file=sys.stderr)
            continue
        try:
            build()
        except subprocess.CalledProcessError as failed:
            print(f"{what}: could not be built: {failed}", file=sys.stderr)


def _wanted(*, emulated: bool) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """What is to be built, what this machine lacks for it, and what builds it."""
    for each in installations():
        yield each.name, place.lacking(place.RUNTIME_TOOLS), each.root
    if emulated:
        yield "the emulated machine", place.lacking(place.numavm_tools(vm.ARCHITECTURE)), vm.build


if __name__ == "__main__":
    main(sys.argv[1:])
