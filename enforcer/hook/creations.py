"""Containers that we answered with a cpuset and that were never created: another plugin may have claimed it too.

A runtime takes a container's cpuset from one plugin alone. One that is asked after us and sets it too fails the
creation; the kubelet is told, we are not, and it tries again under the same pod and name. So an attempt that is
followed by another without having been created may be a conflict, and the next is left open. Where that one is created
with a cpuset, which is another's as we have set none, the conflict is proven, and the replicas of its workload are
spared a failed attempt for a while. Where it is created without, no other plugin wanted it: a creation fails for many
reasons (CRI-O fails it where a program is not there), and it is placed at its start. Where it fails as well, something
else does it, and the one after it is placed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

REMEMBERED_S = 3600.0
"""How long the replicas of a workload are left open after a proven conflict: then one is tried anew."""

MOST = 1024
"""Attempts under way, and proven conflicts, that are remembered; the oldest go first."""


class Shown(Enum):
    """What a container that is there shows of the attempts before it.

    CONFLICT: another plugin claims its cpuset, which was not known. NEEDLESS: it was left open and no other claims it.
    """

    NOTHING = auto()
    CONFLICT = auto()
    NEEDLESS = auto()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One creation that was answered. container: its id. workload: NAMESPACE/KIND/NAME. opened: it was left open
    because of an attempt before it.
    """

    container: str
    workload: str
    opened: bool


class Creations:
    """By pod uid and container name, the attempts that the runtime has not shown to have succeeded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._attempts: dict[tuple[str, str], Attempt] = {}
        self._proven: dict[tuple[str, str], float] = {}

    def answered(self, pod: str, name: str, attempt: Attempt) -> None:
        """With a cpuset, or, where it is left open for an attempt before it, with none."""
        self._attempts[pod, name] = attempt
        if len(self._attempts) > MOST:
            del self._attempts[next(iter(self._attempts))]

    def again(self, pod: str, name: str) -> Attempt | None:
        """The attempt before a new one, if it was never created. One that failed though it was left open proves that
        it is no conflict.
        """
        before = self._attempts.pop((pod, name), None)
        if before is not None and before.opened:
            self._proven.pop((before.workload, name), None)
        return before

    def created(self, pod: str, name: str, container: str, *, claimed: bool) -> Shown:
        """The container is there. claimed: whether it has a cpuset. That one ends proves nothing: containerd undoes a
        failed creation by StopContainer.
        """
        attempt = self._attempts.get((pod, name))
        if attempt is None or attempt.container != container:
            return Shown.NOTHING
        del self._attempts[pod, name]
        if not attempt.opened:
            return Shown.NOTHING
        if not claimed:
            self._proven.pop((attempt.workload, name), None)
            return Shown.NEEDLESS
        new = not self.conflicts(attempt.workload, name)
        if new:
            self._proven[attempt.workload, name] = self._clock() + REMEMBERED_S
        if len(self._proven) > MOST:
            del self._proven[next(iter(self._proven))]
        return Shown.CONFLICT if new else Shown.NOTHING

    def conflicts(self, workload: str, name: str) -> bool:
        """Whether another plugin is known to claim the cpusets of the workload's containers of that name."""
        until = self._proven.get((workload, name))
        if until is not None and until <= self._clock():
            del self._proven[workload, name]
            return False
        return until is not None

    @property
    def proven(self) -> Sequence[tuple[str, str]]:
        """Workloads and container names of which a conflict is known."""
        return [key for key in list(self._proven) if self.conflicts(*key)]

    def forget(self, pod: str) -> None:
        """The pod has ended."""
        for key in [key for key in self._attempts if key[0] == pod]:
            del self._attempts[key]

    def clear(self) -> None:
        """The runtime lists what there is."""
        self._attempts.clear()
