"""What the command lines of these benchmarks have in common."""

from __future__ import annotations

import argparse

from numakin.process.log import to_stderr


def quiet_parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """Of `python -m MODULE`, which prints its table alone: the extender's log has errors only."""
    to_stderr("error", "text")
    return argparse.ArgumentParser(
        prog=f"python -m {module}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
