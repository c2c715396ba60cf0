"""The options of `compare`, apart from what carries it out: the enforcer's supervisor reads them on every node."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable
from pathlib import Path

SYSFS = Path("/sys")

EXAMPLES = """\
examples:
  numakin-enforcer compare                                  wrk -> nginx, some 4 minutes
  numakin-enforcer compare --workload redis --rounds 20
  numakin-enforcer compare --server 'my-server --port {port}' --client 'my-load --port {port} --for {seconds}' \\
      --throughput 'requests per second: ([0-9.]+)'

The two ends run together on one NUMA node, spread over two, and wherever the kernel puts them (twice, as the control),
in turn, in another order each round. Run it on a quiet machine. No container, no cgroup and no privilege is needed:
CPUs are set by taskset, and memory follows by first touch.

exit codes: 0 some difference is significant, 1 none is, a run failed, or the machine has nothing to
compare, 2 wrong use
"""


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("--workload", choices=("nginx", "redis"), default="nginx", help="(default: %(default)s)")
    own.add_argument("--rounds", type=whole(1, 1_000), default=12, help="runs of each way (default: %(default)s)")
    own.add_argument("--seconds", type=whole(1, 3_600), default=5, help="of one run (default: %(default)s)")
    own.add_argument("--seed", type=whole(0, 2**31), default=1, help="another order of runs (default: %(default)s)")
    own.add_argument("--server", default="", metavar="COMMAND", help="your own server; {port}: where it is to listen")
    own.add_argument("--client", default="", metavar="COMMAND", help="your own load; {port}, {cpus}, {seconds}")
    own.add_argument("--throughput", default="", metavar="REGEX", help="its group is the client's rate, more is better")
    own.add_argument("--latency", default="", metavar="REGEX", help="its group is the client's latency, in any unit")
    own.add_argument(
        "--sysfs", type=Path, default=SYSFS, metavar="DIR", help="the machine's sysfs (default: %(default)s)"
    )
    own.add_argument("--json", action="store_true", help="every run and every ratio, for machines")


def whole(low: int, high: int) -> Callable[[str], int]:
    """An option's type: a whole number between the two."""

    def number(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed: a whole number, {low} to {high}")
        return int(text)

    return number


def parse_arguments(name: str, command: str) -> list[str]:
    """The words of option --NAME's command. ValueError in words for people."""
    try:
        arguments = shlex.split(command)
    except ValueError as bad:
        raise ValueError(f"--{name}: {bad}: {command!r}") from bad
    if not arguments:
        raise ValueError(f"--{name} is empty")
    return arguments


def parse_expression(name: str, text: str) -> str:
    """Option --NAME's expression, which may be empty. ValueError, in words for people, where it has not one group."""
    try:
        groups = re.compile(text).groups
    except re.error as bad:
        raise ValueError(f"--{name}: no regular expression: {bad}: {text!r}") from bad
    if text and groups != 1:
        raise ValueError(f"--{name} must have one group, around the number, not {groups}: {text!r}")
    return text
