"""All ways in turn, each with fresh pods, under the user's load; and the Deployments as they were, whatever happens."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from numakin.compare.presentation import number
from numakin.compare.rounds import Round, complete, in_turn
from numakin.compare.running import Run, killed
from numakin.compare.workloads import BadFigures, Figures
from numakin.kubectl.comparing.deployment import Deployment, Taken
from numakin.kubectl.comparing.templates import WAYS, WITH, Variant
from numakin.kubectl.errors import CommandError
from numakin.kubectl.undoing import undone


@dataclass(frozen=True, slots=True)
class Load:
    """A command that loads the Deployments from here, and how to read its output. settle_s: between the pods being
    ready and its start. timeout_s: of one run.
    """

    command: Sequence[str]
    figures: Callable[[str], Figures]
    settle_s: float
    timeout_s: float

    def run(self) -> Figures:
        """CommandError when it fails or does not end, BadFigures when its output has no figures. Nothing that it has
        started outlives it: the next run would be loaded by that too.
        """
        try:
            load = subprocess.Popen(
                self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                text=True, errors="replace", start_new_session=True,
            )  # fmt: skip
        except OSError as bad:
            raise CommandError(f"the load can't be started: {bad}") from bad
        with load:
            try:
                output, _ = load.communicate(timeout=self.timeout_s)
            except subprocess.TimeoutExpired:
                raise CommandError(f"the load has not ended after {self.timeout_s:.0f} s") from None
            finally:
                killed(load)
        if load.returncode:
            raise CommandError(f"the load failed ({load.returncode}): {' '.join(output.split())[-300:]}")
        return self.figures(output)


@dataclass(frozen=True, slots=True)
class Placed:
    """What an extender knows of some pods. share: how many of them numakin has placed; locality: how much of their
    groups is inside one NUMA node, None where no group has two.
    """

    share: float
    locality: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared, and how. group: of Deployments that have none. placed: of pods by their uids, as it is when
    called; None where it is not known.
    """

    deployments: Sequence[Deployment]
    group: str
    load: Load
    placed: Callable[[Collection[str]], Placed | None]
    rounds: int
    seed: int


def measure(plan: Plan, report: Callable[[str], None]) -> tuple[tuple[Round, ...], str]:
    """The rounds, and what ended them early, as of `complete`. The Deployments are restored, also after a signal of
    `STOPPING`, before this returns or raises.
    """

    def run(way: Variant) -> Run:
        by_deployment = _rolled_out(plan, way)
        pods = [pod for theirs in by_deployment.values() for pod in theirs]
        time.sleep(plan.load.settle_s)
        figures = plan.load.run()
        placed = plan.placed({pod["metadata"]["uid"] for pod in pods}) if way.name == WITH else None
        for deployment in plan.deployments:
            deployment.must_run(way.name)
        disturbed = sum(deployment.disturbed(theirs) for deployment, theirs in by_deployment.items())
        nodes = len({pod["spec"].get("nodeName") for pod in pods})
        said = f", {placed.share:.1%} of them placed by numakin" if placed else ""
        said += f"; {disturbed} restarted or were replaced under the load" if disturbed else ""
        report(f"{way.name}: {number(figures.throughput)}/s; {len(pods)} pods on {nodes} nodes{said}")
        share, locality = (placed.share, placed.locality) if placed else (None, None)
        return Run(way.name, figures, locality, None, share, disturbed)

    ours: list[Deployment] = []
    with undone(partial(_restore_aloud, ours, report)):
        for deployment in plan.deployments:
            _begin(deployment, ours)
        told = partial(_progress, report, plan.rounds)
        return complete(in_turn(run, WAYS, plan.rounds, plan.seed, told), (CommandError, BadFigures))


def _begin(deployment: Deployment, ours: list[Deployment]) -> None:
    """ours: those to restore; one too of which it is not known whether it has begun, as where an answer was lost."""
    ours.append(deployment)
    try:
        deployment.begin()
    except Taken:
        ours.remove(deployment)
        raise


def _progress(report: Callable[[str], None], rounds: int, number: int, _run: Run) -> None:
    report(f"round {number} of {rounds}")


def restore(deployments: Sequence[Deployment]) -> None:
    """Each, whatever the others do; CommandError naming those that could not be."""
    left: dict[Deployment, CommandError] = {}
    for step in (Deployment.put_back, Deployment.clean):
        for deployment in deployments:
            if deployment not in left:
                try:
                    step(deployment)
                except CommandError as bad:
                    left[deployment] = bad
    if left:
        names = " ".join(map(str, left))
        raise CommandError(f"not restored: {names} ({next(iter(left.values()))}): run compare {names} --restore")


def _rolled_out(plan: Plan, way: Variant) -> dict[Deployment, list[dict[str, Any]]]:
    """The pods of each."""
    for deployment in plan.deployments:
        deployment.change(way.name, plan.group)
    return {deployment: deployment.rolled_out(way.name) for deployment in plan.deployments}


def _restore_aloud(deployments: Sequence[Deployment], report: Callable[[str], None]) -> None:
    """Also where no reader is left: rich ends the process over a broken pipe."""
    with suppress(OSError, SystemExit):
        report("restoring: please wait")
    restore(deployments)
