"""`compare` on one machine: what it does and prints."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from functools import partial
from signal import SIGINT

from rich.console import Console

from enforcer.machine.errors import MachineError
from enforcer.machine.sysfs import read_machine
from numakin.compare import presentation
from numakin.compare.arms import ON_ONE_MACHINE, NothingToCompare, arms
from numakin.compare.options import parse_arguments, parse_expression
from numakin.compare.rounds import complete, in_turn, result
from numakin.compare.running import Run, RunFailed, run
from numakin.compare.workloads import WORKLOADS, BadFigures, Workload, of_commands
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.errors import PlacementError
from numakin.terminal import console

INCONCLUSIVE, WRONG_USE, INTERRUPTED = 1, 2, 128 + SIGINT
FAILURES = (RunFailed, BadFigures, OSError)
"""Of one run; the rounds before it count."""


def compare(given: argparse.Namespace, program: str) -> int:
    """Runs it all. program: whose name complaints begin with."""
    try:
        workload = _workload(given)
        machine = read_machine(given.sysfs)
        ways = arms(machine, CpuSet.of(os.sched_getaffinity(0)) & machine.cpus)
    except NothingToCompare as nothing:
        print(f"{program}: {nothing}", file=sys.stderr)
        return INCONCLUSIVE
    except (ValueError, MachineError, PlacementError, OSError) as bad:
        print(f"{program}: {bad}", file=sys.stderr)
        return WRONG_USE
    out = console(stderr=given.json)
    out.print(f"{workload.name}: {given.rounds} rounds of {len(ways)} runs, {given.seconds} s each", soft_wrap=True)
    for way in ways:
        out.print(f"  {way.name}: server on CPUs {way.server}, client on CPUs {way.client}", soft_wrap=True)
    try:
        run_arm = partial(run, machine, workload, seconds=given.seconds)
        turns = in_turn(run_arm, ways, given.rounds, given.seed, partial(_progress, out, given.rounds))
        rounds, cut_short = complete(turns, FAILURES)
    except FAILURES as bad:
        print(f"{program}: {bad}", file=sys.stderr)
        return INCONCLUSIVE
    except KeyboardInterrupt:
        return INTERRUPTED
    outcome = result(rounds, ON_ONE_MACHINE, cut_short)
    if given.json:
        print(
            json.dumps(presentation.as_json(outcome, {"workload": workload.name, "seconds": given.seconds}), indent=2)
        )
    else:
        out.print(presentation.table(outcome, millis=not given.server))
        for line in presentation.conclusions(outcome):
            out.print(line, soft_wrap=True)
    return 0 if outcome.conclusive and not cut_short else INCONCLUSIVE


def _progress(out: Console, rounds: int, number: int, run: Run) -> None:
    if out.is_terminal:
        out.print(f"round {number} of {rounds}: {run.arm}: {run.figures.throughput:,.0f}/s", style="dim")


def _workload(given: argparse.Namespace) -> Workload:
    """ValueError when it can't be run here."""
    own = {name: getattr(given, name) for name in ("server", "client", "throughput")}
    if any(own.values()):
        missing = [f"--{name}" for name, value in own.items() if not value]
        if missing:
            raise ValueError(f"your own workload needs --server, --client and --throughput: {missing[0]} is missing")
        commands = parse_arguments("server", own["server"]), parse_arguments("client", own["client"])
        figures = parse_expression("throughput", own["throughput"]), parse_expression("latency", given.latency)
        workload = of_commands(*commands, *figures)
    elif given.latency:
        raise ValueError("--latency belongs to your own workload: --server, --client and --throughput")
    else:
        workload = WORKLOADS[given.workload]
    absent = [program for program in (*workload.needs, "taskset") if shutil.which(program) is None]
    if absent:
        raise ValueError(f"{absent[0]} is not installed: it is needed for {workload.name}")
    return workload
