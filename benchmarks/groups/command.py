"""What the command lines of these benchmarks have in common."""

from __future__ import annotations

import argparse
import logging

import structlog


def quiet_parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """Of `python -m MODULE`, which prints its table alone: the extender's log has errors only."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    return argparse.ArgumentParser(
        prog=f"python -m {module}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
