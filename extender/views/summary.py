"""Why a pod is where it is, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from extender.state.node_report import DecisionRow
from extender.views.nearness import Nearness, Whereabouts
from numakin.placement.decide.choice import NOMINATED
from numakin.placement.decide.decide import Reason

KIN, EMPTIEST, FOLLOWS = "its kin are near", "no kin here", "its pod is there"
MEANWHILE = frozenset({"let out", "home again"})

BECAUSE = {
    KIN: "its kin were near when it came",
    EMPTIEST: "it was the emptiest that fits, and no kin were there when it came",
    NOMINATED: "the extender nominated it",
    "planned": "the plan for its workload keeps a place there",
    FOLLOWS: "its pod was there already",
    "moved": "it was moved to its kin",
    "room": "there is room by now",
}
"""By what the first reason of a decision is about."""

OPEN = frozenset({"yielded", "conflict", "vm", "refused", "release"})
"""Events after which a container has nothing of numakin's."""

NOWHERE = frozenset({"fits nowhere", "fault", "policy none"})
"""Reasons of a decision that leaves a container open."""

MOSTLY = 0.5
"""Share of its kin from which a pod is said to be somewhere because of them."""


def sentence(
    name: str,
    place: Whereabouts | None,
    decisions: Sequence[DecisionRow],
    predicted: Reason | None,
    near: Nearness | None,
    *,
    held: bool,
) -> str:
    """decisions: its enforcer's on all of its containers, the latest last. predicted: the first reason of the
    extender's own, on the node where the pod is. held: the pod is not reported yet, and its room is held there. Empty
    where nothing can be said.
    """
    latest = {decision.container: decision for decision in decisions}
    left_open = {container: why for container, decision in latest.items() if (why := _left_open(decision))}
    if left_open and len(left_open) == len(latest):
        return f"{name} is left open{f' on {place.node}' if place else ''}: {[*left_open.values()][-1]}"
    if place is None:
        return ""
    where = f"NUMA node {place.numa_nodes} of {place.node}"
    if place.let_out:
        out = f"{name} runs on NUMA node {place.let_out} of {place.node}"
        return f"{out} while its home, NUMA node {place.numa_nodes}, is hot"
    begin = f"room is held for {name} on {where}" if held else f"{name} is on {where}"
    placed = [decision for decision in decisions if decision.container not in left_open]
    others = "".join(f"; its container {container} is left open: {why}" for container, why in left_open.items())
    return begin + _because(_lead(placed, predicted), near) + others


def _left_open(decision: DecisionRow) -> str:
    """Why; empty where it is pinned."""
    reason = next((reason for reason in decision.reasons if reason.what in NOWHERE), None)
    if reason is None and decision.event in OPEN and decision.reasons:
        reason = decision.reasons[0]
    return str(reason) if reason is not None else ""


def _lead(decisions: Sequence[DecisionRow], predicted: Reason | None) -> Reason | None:
    """What led to the place: of a pod's further containers that is what led its first one there. A nomination that was
    kept is explained by what it was made for.
    """
    leads = [reason for decision in decisions for reason in _causes(decision)[:1]]
    lead = next((reason for reason in reversed(leads) if reason.what != FOLLOWS), leads[-1] if leads else None)
    if predicted is not None and (lead is None or lead.what == NOMINATED):
        return predicted
    return lead


def _causes(decision: DecisionRow) -> list[Reason]:
    """Without where it ran for a while meanwhile."""
    return [reason for reason in decision.reasons if reason.what not in MEANWHILE]


def _because(lead: Reason | None, near: Nearness | None) -> str:
    if near is not None and near.share >= MOSTLY and (lead is None or lead.what == KIN):
        return f" because {near}"
    why = "" if lead is None else f" because {BECAUSE[lead.what]}" if lead.what in BECAUSE else f": {lead}"
    return why + (f"; {near} now" if near is not None else "")
