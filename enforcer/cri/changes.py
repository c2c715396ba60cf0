"""What happened between two looks at a runtime: pure.

A look sees states, not events, so nothing is lost with an event that is: whatever happened in between is told as one
step from what was to what is, in the order in which a runtime would tell it. Ends come first, since what they free may
be wanted by a newcomer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from proto import nri_pb2 as nri


class Kind(Enum):
    """What became of a container, or of a whole pod."""

    STOPPED = auto()
    POD_ENDED = auto()
    CREATED = auto()
    STARTED = auto()
    RESIZED = auto()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The sandboxes that are ready, and their containers that are created or running; by id."""

    sandboxes: Mapping[str, nri.PodSandbox] = field(default_factory=dict)
    containers: Mapping[str, nri.Container] = field(default_factory=dict)

    def pod_of(self, container: nri.Container) -> nri.PodSandbox:
        return self.sandboxes[container.pod_sandbox_id]


@dataclass(frozen=True, slots=True)
class Change:
    """container: None for POD_ENDED."""

    kind: Kind
    pod: nri.PodSandbox
    container: nri.Container | None = None


def changes(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    """From one look to the next; a container that was created and started in between is told as CREATED, running."""
    for key, one in before.containers.items():
        if key not in after.containers:
            yield Change(Kind.STOPPED, before.pod_of(one), one)
    for key, pod in before.sandboxes.items():
        if key not in after.sandboxes:
            yield Change(Kind.POD_ENDED, pod)
    newcomers = [one for key, one in after.containers.items() if key not in before.containers]
    for one in sorted(newcomers, key=lambda one: (one.created_at, one.id)):
        yield Change(Kind.CREATED, after.pod_of(one), one)
    for key, one in after.containers.items():
        known = before.containers.get(key)
        if known is None:
            continue
        if known.state != one.state or known.pid != one.pid:
            yield Change(Kind.STARTED, after.pod_of(one), one)
        if known.linux.resources != one.linux.resources:
            yield Change(Kind.RESIZED, after.pod_of(one), one)
