"""Decisions made before the runtime asks for them: between a sandbox's start and its first container lie 100 ms and
more, in which no container waits.

What the container will ask for is taken to be what the first container of the workload's last pod asked for. A decision
is used only when the request, the occupancy and all that is known of kin are what they were when it was made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter

from numakin.placement.decide.decide import Decision, Kin, Request
from numakin.placement.state.occupancy import Occupancy
from numakin.wire import nri_pb2 as nri

MOST_PODS = 4
"""Pods that are prepared for at once; of more, the latest."""

MOST_WORKLOADS = 1024
"""Workloads whose last request is remembered; the oldest go first."""

_asked = attrgetter(*(field.name for field in fields(Request) if field.name != "container"))


@dataclass(frozen=True, slots=True)
class Basis:
    """What a decision is made from. learned: the version of what traffic taught. nomination: the extender's, if any."""

    occupancy: Occupancy
    learned: int
    nomination: object | None
    request: Request

    def same(self, other: Basis) -> bool:
        """Whether the same would be decided; which container asks makes no difference before it has an allocation."""
        return (
            self.occupancy is other.occupancy
            and self.learned == other.learned
            and self.nomination is other.nomination
            and _asked(self.request) == _asked(other.request)
        )


@dataclass(slots=True)
class _Awaited:
    """A pod without a container yet. basis: what was prepared from, and what was made of it."""

    sandbox: nri.PodSandbox
    basis: Basis | None = None
    made: tuple[Kin, Decision] | None = None


class PreparedDecisions:
    """By pod uid, for pods that have no container yet."""

    def __init__(self) -> None:
        self._pods: OrderedDict[str, _Awaited] = OrderedDict()
        self._requests: OrderedDict[str, Request] = OrderedDict()

    def expect(self, sandbox: nri.PodSandbox) -> None:
        """Its first container comes soon."""
        self._pods[sandbox.uid] = _Awaited(sandbox)
        if len(self._pods) > MOST_PODS:
            self._pods.popitem(last=False)

    def forget(self, pod: str) -> None:
        self._pods.pop(pod, None)

    @property
    def waiting(self) -> bool:
        """Whether a pod has no container yet."""
        return bool(self._pods)

    def covers(self, pod: str) -> bool:
        """Whether there is a decision for it, made by a reading of free memory of a moment ago."""
        return pod in self._pods and self._pods[pod].made is not None

    def first_request(self, request: Request) -> None:
        """What a pod's first container asked for: its workload's next pod will ask for the same."""
        self._requests[request.workload] = request
        self._requests.move_to_end(request.workload)
        if len(self._requests) > MOST_WORKLOADS:
            self._requests.popitem(last=False)

    def last_request(self, workload: str) -> Request | None:
        return self._requests.get(workload)

    def prepare(
        self, basis_of: Callable[[nri.PodSandbox], Basis | None], decide: Callable[[Basis], tuple[Kin, Decision]]
    ) -> bool:
        """Decides for one pod for which nothing is prepared, or not from what is known now; whether it did.

        basis_of: None for a pod of which nothing can be foreseen. decide: what it raises is raised.
        """
        for uid, pod in [*self._pods.items()]:
            basis = basis_of(pod.sandbox)
            if basis is None:
                del self._pods[uid]
            elif pod.basis is None or not pod.basis.same(basis):
                pod.basis, pod.made = basis, None
                pod.made = decide(basis)
                return True
        return False

    def take(self, basis: Basis) -> tuple[Kin, Decision] | None:
        """What was prepared for the pod from just this basis; each is used once."""
        pod = self._pods.pop(basis.request.pod, None)
        return pod.made if pod is not None and pod.basis is not None and pod.basis.same(basis) else None
