"""What the hook counts, for Prometheus. It sends all of it each time, counted since its start: a new hook begins at 0,
which is what Prometheus expects of a counter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from proto import local_pb2 as local


@dataclass(frozen=True, slots=True)
class _Family:
    """label: empty where there is one series; else `values` has the label's value by what the hook calls it."""

    name: str
    text: str
    label: str
    values: Mapping[str, str]


FAMILIES = (
    _Family(
        "numakin_enforcer_placements",
        "Containers of opted-in pods, by what became of them.",
        "result",
        {"pinned": "pinned", "left open": "left_open", "yielded": "yielded", "refused": "refused"},
    ),
    _Family(
        "numakin_predictions",
        "Nominations of the scheduler to this node, by what became of them.",
        "outcome",
        {"kept": "kept", "declined": "declined", "late": "late"},
    ),
    _Family(
        "numakin_enforcer_moves",
        "Running members that were moved, and moves that were not made.",
        "result",
        {"moved": "made", "move declined": "declined", "move taken back": "taken_back"},
    ),
    _Family("numakin_enforcer_resizes", "Members that were resized in place.", "", {"resized": ""}),
    _Family(
        "numakin_enforcer_memory_opened", "Members whose memory was opened after a resize.", "", {"memory opened": ""}
    ),
    _Family("numakin_enforcer_bad_annotations", "Annotations that were not taken.", "", {"bad annotation": ""}),
    _Family("numakin_enforcer_faults", "Exceptions of ours that cost a container its place.", "", {"failed": ""}),
    _Family(
        "numakin_enforcer_allocations_unwritten",
        "Times that what containers were given could not be written down.",
        "",
        {"not written down": ""},
    ),
)


class HookCounts(Collector):
    """Written by one thread, read by any."""

    def __init__(self) -> None:
        self._counts = local.Counts()

    def hear(self, counts: local.Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterable[CounterMetricFamily]:
        counts = self._counts
        for one in FAMILIES:
            family = CounterMetricFamily(one.name, one.text, labels=[one.label] if one.label else [])
            for said, value in one.values.items():
                family.add_metric([value] if one.label else [], counts.outcomes.get(said, 0))
            yield family
        yield _by_event("numakin_enforcer_runtime_events", "Events of the runtime.", counts.events)
        yield _by_event(
            "numakin_enforcer_handler_faults",
            "Events over which our handler raised: answered with no adjustment.",
            counts.handler_faults,
        )
        for name, text, count in (
            ("late_answers", "Answers to the runtime that came after its deadline.", counts.late_answers),
            ("runtime_connections", "Connections to the runtime.", counts.connections),
            ("runtime_losses", "Connections to the runtime that were lost.", counts.losses),
        ):
            yield CounterMetricFamily(f"numakin_enforcer_{name}", text, value=count)


def _by_event(name: str, text: str, counts: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=["event"])
    for event, count in counts.items():
        family.add_metric([event], count)
    return family
