"""What a plugin counts, over all its sessions."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Stats:
    """Counters that only grow; keys are NRI method names, a StateChange counts as its event's."""

    requests: Counter[str] = field(default_factory=Counter)
    handler_errors: Counter[str] = field(default_factory=Counter)
    unknown_methods: Counter[str] = field(default_factory=Counter)
    late_answers: int = 0
    connections: int = 0
    losses: int = 0
