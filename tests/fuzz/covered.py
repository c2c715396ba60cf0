"""python -m tests.fuzz.covered TARGET ARGUMENTS: one target under atheris; the arguments are libFuzzer's.

A process of its own: atheris instruments modules as they are imported, and ends the process at the first fault.
"""

from __future__ import annotations

import logging
import sys

import atheris

with atheris.instrument_imports(
    include=["enforcer", "extender", "numakin.placement", "numakin.wire", "numakin.process"]
):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    name, *arguments = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    atheris.Setup([f"fuzz-{name}", *arguments], TARGETS[name].run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
