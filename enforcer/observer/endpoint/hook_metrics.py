"""What the hook counts, for Prometheus. It sends all of it each time, counted since its start: a new hook begins at 0,
which is what Prometheus expects of a counter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from enforcer.observer.endpoint.families import family, histogram, single
from numakin.wire import local_pb2 as local


@dataclass(frozen=True, slots=True)
class _Family:
    """label: empty where there is one series; else `values` has the label's value by the hook's name of an outcome."""

    name: str
    text: str
    label: str
    values: Mapping[str, str]


FAMILIES = (
    _Family(
        "enforcer_placements_total",
        "Containers of opted-in pods, by what became of them.",
        "result",
        {
            "pinned": "pinned",
            "left open": "left_open",
            "yielded": "yielded",
            "conflict": "conflict",
            "in vm": "vm",
            "refused": "refused",
        },
    ),
    _Family(
        "enforcer_never_created_total",
        "Containers that were answered with a cpuset and never created: another plugin that is asked later may set it.",
        "",
        {"never created": ""},
    ),
    _Family(
        "predictions_total",
        "Nominations of the scheduler to this node, by what became of them.",
        "outcome",
        {"kept": "kept", "declined": "declined", "late": "late"},
    ),
    _Family(
        "enforcer_moves_total",
        "Running members that were moved, and moves that were not made.",
        "result",
        {"moved": "made", "move declined": "declined", "move taken back": "taken_back"},
    ),
    _Family(
        "enforcer_moves_planned_total",
        "Running members whose move was told and not made, as --moves is plan; each move once.",
        "",
        {"move planned": ""},
    ),
    _Family(
        "enforcer_moves_proven_total",
        "Running members that were moved, by what came of it six windows later.",
        "result",
        {"move helped": "helped", "move did not help": "did_not_help", "move not judged": "not_judged"},
    ),
    _Family(
        "enforcer_improved_total",
        "Running members that were placed better when room came free: with a home, with CPUs of their own, or on fewer "
        "NUMA nodes than before.",
        "",
        {"improved": ""},
    ),
    _Family(
        "enforcer_exclusive_lent_total",
        "Running members with exclusive CPUs whose request was rounded up, and that share as others needed the rest.",
        "",
        {"shares again": ""},
    ),
    _Family(
        "enforcer_relief_total",
        "Containers of members that were let out of hot CPUs, and that came home.",
        "result",
        {"let out": "let_out", "home again": "home"},
    ),
    _Family("enforcer_resizes_total", "Members that were resized in place.", "", {"resized": ""}),
    _Family(
        "enforcer_memory_opened_total",
        "Members whose memory was opened: it could not hold what they may use by now.",
        "",
        {"memory opened": ""},
    ),
    _Family("enforcer_bad_annotations_total", "Annotations that were not taken.", "", {"bad annotation": ""}),
    _Family(
        "enforcer_over_quota_total",
        "Containers that asked for more than their namespace may have, and were placed without it.",
        "",
        {"over quota": ""},
    ),
    _Family(
        "enforcer_cpusets_differing_total",
        "Containers whose cgroup has another cpuset than it was given, though it was asked for twice.",
        "",
        {"differs": ""},
    ),
    _Family(
        "enforcer_memory_policies_not_applied_total",
        "Containers that started without the memory policy that was asked for.",
        "",
        {"memory policy not applied": ""},
    ),
    _Family("enforcer_faults_total", "Exceptions of ours that cost a container its place.", "", {"failed": ""}),
    _Family(
        "enforcer_allocations_unwritten_total",
        "Times that what containers were given could not be written down.",
        "",
        {"not written down": ""},
    ),
)


class HookCounts(Collector):
    """Written by one thread, read by any."""

    def __init__(self) -> None:
        self._counts = local.Counts()

    def received(self, counts: local.Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        counts = self._counts
        for outcome in FAMILIES:
            values = {value: counts.outcomes.get(name, 0) for name, value in outcome.values.items()}
            if outcome.label:
                yield family(outcome.name, outcome.text, (outcome.label,), values)
            else:
                yield single(outcome.name, outcome.text, sum(values.values()))
        for name, text, by_event in (
            ("runtime_events", "Events of the runtime.", counts.events),
            (
                "handler_faults",
                "Events over which our handler raised: answered without adjustment; `timer`: work between events.",
                counts.handler_faults,
            ),
        ):
            yield family(f"enforcer_{name}_total", text, ("event",), by_event)
        for name, text, count in (
            ("late_answers", "Answers to the runtime that came after its deadline.", counts.late_answers),
            ("runtime_connections", "Connections to the runtime.", counts.connections),
            ("runtime_losses", "Connections to the runtime that were lost.", counts.losses),
        ):
            yield single(f"enforcer_{name}_total", text, count)
        yield from _durations(counts)


def _durations(counts: local.Counts) -> Iterable[Metric]:
    yield histogram(
        "enforcer_handler_seconds", "How long our handler of an event of the runtime took.", ("event",), counts.handlers
    )
    yield histogram(
        "enforcer_answer_seconds",
        "How long the runtime waited for our answer, from reading its request to having written the answer.",
        ("event",),
        counts.answers,
    )
    yield histogram("enforcer_decision_seconds", "How long deciding on a container took.", (), {(): counts.decisions})
