"""What happened between two polls of a runtime: pure.

A poll sees states, not events, so nothing is lost with an event that is: whatever happened in between is one step from
what was to what is, in the order in which a runtime would report it. Ends come first, since what they free may be
wanted by a newcomer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from numakin.wire import nri_pb2 as nri


class ChangeKind(Enum):
    """What became of a container, or of a whole pod."""

    STOPPED = auto()
    POD_ENDED = auto()
    CREATED = auto()
    STARTED = auto()
    RESIZED = auto()


@dataclass(frozen=True, slots=True)
class RuntimeSnapshot:
    """The sandboxes that are ready, or of which a container runs on though their pause process has ended, and their
    containers that are created or running; by id.
    """

    sandboxes: Mapping[str, nri.PodSandbox] = field(default_factory=dict)
    containers: Mapping[str, nri.Container] = field(default_factory=dict)

    def pod_of(self, container: nri.Container) -> nri.PodSandbox:
        return self.sandboxes[container.pod_sandbox_id]


@dataclass(frozen=True, slots=True)
class Change:
    """container: None for POD_ENDED."""

    kind: ChangeKind
    pod: nri.PodSandbox
    container: nri.Container | None = None


def changes(before: RuntimeSnapshot, after: RuntimeSnapshot) -> Iterator[Change]:
    """From one poll to the next; a container that was created and started in between is CREATED, running."""
    for key, container in before.containers.items():
        if key not in after.containers:
            yield Change(ChangeKind.STOPPED, before.pod_of(container), container)
    for key, pod in before.sandboxes.items():
        if key not in after.sandboxes:
            yield Change(ChangeKind.POD_ENDED, pod)
    newcomers = [container for key, container in after.containers.items() if key not in before.containers]
    for newcomer in sorted(newcomers, key=lambda newcomer: (newcomer.created_at, newcomer.id)):
        yield Change(ChangeKind.CREATED, after.pod_of(newcomer), newcomer)
    for key, container in after.containers.items():
        known = before.containers.get(key)
        if known is None:
            continue
        if known.state != container.state or known.pid != container.pid:
            yield Change(ChangeKind.STARTED, after.pod_of(container), container)
        if known.linux.resources != container.linux.resources:
            yield Change(ChangeKind.RESIZED, after.pod_of(container), container)
