"""What the replicas' answers say of the installation: lines for people, the bad ones first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from extender.check.replicas import ReplicaAnswer

NAMED = 10
"""Nodes that a line names."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A line about one thing. passing: it may become good by itself in a while."""

    good: bool
    text: str
    passing: bool = False


def verdicts(replicas: Sequence[ReplicaAnswer]) -> list[Verdict]:
    found = [*_ready(replicas), *_reported(replicas), _called(replicas)]
    return sorted(found, key=lambda each: each.good)


def _ready(replicas: Sequence[ReplicaAnswer]) -> Iterator[Verdict]:
    missing = [each for each in replicas if each.missing]
    for each in missing:
        yield Verdict(good=False, text=f"the replica {each.address} is not ready: {each.missing}", passing=True)
    if not missing:
        yield Verdict(good=True, text=f"replicas of the extender that are ready, over TLS: {len(replicas)}")


def _reported(replicas: Sequence[ReplicaAnswer]) -> Iterator[Verdict]:
    """A node that some replica lacks is lacking: kube-scheduler may ask that one."""
    known = {node["node"] for each in replicas for node in each.nodes}
    lacking = {
        "no enforcer has reported from": {name for each in replicas for name in _lacked(each, known)},
        "the enforcer no longer reports from": _of(replicas, "live"),
        "the enforcer is not registered with the container runtime on": _of(replicas, "registered"),
    }
    bad = {text: names for text, names in lacking.items() if names}
    for text, names in bad.items():
        what = f"{text} {_some(names)}: see the log of its pod, and kubectl numakin doctor"
        yield Verdict(good=False, text=what, passing=True)
    if not known and not bad:
        yield Verdict(good=False, text="no enforcer has a pod on any node: see its DaemonSet", passing=True)
    elif not bad:
        yield Verdict(good=True, text=f"nodes whose enforcers report to every replica: {len(known)}")


def _lacked(replica: ReplicaAnswer, known: set[str]) -> set[str]:
    return {*replica.unreported, *known} - {node["node"] for node in replica.nodes}


def _of(replicas: Sequence[ReplicaAnswer], key: str) -> set[str]:
    """The nodes of which a replica does not say so."""
    return {node["node"] for each in replicas for node in each.nodes if not node[key]}


def _called(replicas: Sequence[ReplicaAnswer]) -> Verdict:
    """kube-scheduler has bound this program's own pod: with the extender configured it has asked, given a choice."""
    calls = sum(each.calls for each in replicas)
    if calls:
        return Verdict(good=True, text=f"calls of kube-scheduler since the replicas began: {calls:.0f}")
    refused = any(each.refused for each in replicas)
    nodes = {name for each in replicas for name in (*(node["node"] for node in each.nodes), *each.unreported)}
    if not refused and len(nodes) == 1:
        return Verdict(good=True, text="kube-scheduler has not called, as it asks for no scores where one node is all")
    why = "give it scheduler-config/kube-scheduler-config.yaml, and see docs/scheduler.md, Reaching the extender; "
    why += "where the replicas became ready only after that, test again; where one node alone could take this pod, "
    why += "no call was to be made"
    if refused:
        why = (
            "somebody was not let in, most often without its certificate (the extender's log says why): copy the "
            "Secret numakin-kube-scheduler to kube-scheduler's files"
        )
    return Verdict(good=False, text=f"kube-scheduler, which placed this pod, has called no replica: {why}")


def _some(names: set[str]) -> str:
    rest = len(names) - NAMED
    return ", ".join(sorted(names)[:NAMED]) + (f" and {rest} more" if rest > 0 else "")
