"""What a plugin counts, over all its sessions."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from numakin.process.durations import Durations


@dataclass(slots=True)
class Stats:
    """Counters that only grow; keys are NRI method names, a StateChange counts as its event's.

    handlers: how long our handler of an event took. answers: from reading a request to having written its answer.
    """

    requests: Counter[str] = field(default_factory=Counter)
    handler_errors: Counter[str] = field(default_factory=Counter)
    unknown_methods: Counter[str] = field(default_factory=Counter)
    late_answers: int = 0
    connections: int = 0
    losses: int = 0
    handlers: defaultdict[str, Durations] = field(default_factory=lambda: defaultdict(Durations))
    answers: defaultdict[str, Durations] = field(default_factory=lambda: defaultdict(Durations))
