"""kube-scheduler's cycle of a PodGroup, as seen on 1.36.2: all of its pods or none.

The pods are tried in turn, each answer counts in kube-scheduler's own snapshot alone, and nothing is bound in between.
With a topology constraint the whole gang is tried once for each placement, with that placement's nodes alone, and one
of those that hold it is chosen without the extender: here the first. A gang that fits nowhere is tried again at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lab.standins.scheduler.cache import Room
from lab.standins.scheduler.scheduler import Choice, DoesNotFitError, Scheduler


@dataclass(frozen=True, slots=True)
class GangPod:
    """A pod as kube-scheduler sends it, its workload, and what it requests."""

    pod: Mapping[str, Any]
    workload: str
    want: Room


def try_gang(
    scheduler: Scheduler, pods: Sequence[GangPod], placements: Sequence[Collection[str]] = ()
) -> list[Choice] | None:
    """One try: each pod's choice, which counts from now on; None where no placement holds all. placements: none: all
    nodes are one.
    """
    everywhere: Sequence[Collection[str] | None] = placements or [None]
    holding = [choices for placement in everywhere if (choices := _tried(scheduler, pods, placement))]
    if not holding:
        return None
    chosen = holding[0]
    for each, choice in zip(pods, chosen, strict=True):
        scheduler.assume(choice.node, each.workload, each.want)
    return chosen


def _tried(scheduler: Scheduler, pods: Sequence[GangPod], placement: Collection[str] | None) -> list[Choice]:
    """Empty where one of them does not fit; nothing counts afterwards."""
    choices: list[Choice] = []
    with suppress(DoesNotFitError):
        choices.extend(scheduler.schedule(each.pod, each.workload, each.want, placement) for each in pods)
    for each, choice in zip(pods, choices, strict=False):
        scheduler.forget(choice.node, each.workload, each.want)
    return choices if len(choices) == len(pods) else []
