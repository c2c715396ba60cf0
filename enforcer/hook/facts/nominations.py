"""The extender's nominations: a bounded table by pod uid."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from numakin.placement.decide.decide import Kin
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand, PodBudget, of_pod
from numakin.placement.model.errors import PlacementError
from numakin.placement.optin.parsing import OptIn
from numakin.process.log import Log
from numakin.wire import convert
from numakin.wire import report_pb2 as pb

log = Log("hook.nominations")

MOST = 4096
"""The most nominations kept: several times what a node can hold of pods (the kubelet's default is 110); the oldest go
first.
"""


@dataclass(frozen=True, slots=True)
class _Nomination:
    """A nomination as it is asked for while a container waits. containers, demands: by container name. summed: whether
    the pod asks for what its containers do together. budget: of a pod that has CPU of its own. used_milli: what the
    pod's workload is known to use.
    """

    expect: pb.Expect
    containers: Mapping[str, pb.ContainerDemand]
    demands: Mapping[str, Demand]
    whole: Demand | None
    summed: bool
    budget: PodBudget | None = None
    used_milli: int = 0


NO_DEMANDS: Mapping[str, Demand] = {}


class Nominations:
    """Nominations by pod uid; a newer one for the same pod takes the older one's place."""

    def __init__(self) -> None:
        self._by_pod: OrderedDict[str, _Nomination] = OrderedDict()

    def add(self, expect: pb.Expect) -> bool:
        """True for the first of its pod. One that names no NUMA nodes only brings the facts up to date; what is no list
        of them is taken out of the message.
        """
        _leave_readable(expect)
        before = self._by_pod.get(expect.pod)
        if before is not None and not expect.numa_nodes:
            expect = _renewed(before.expect, expect)
        self._by_pod[expect.pod] = _read(expect)
        self._by_pod.move_to_end(expect.pod)
        while len(self._by_pod) > MOST:
            self._by_pod.popitem(last=False)
        return before is None

    def forget(self, pod: str) -> None:
        self._by_pod.pop(pod, None)

    def __len__(self) -> int:
        return len(self._by_pod)

    def get(self, pod: str) -> pb.Expect | None:
        nomination = self._by_pod.get(pod)
        return nomination.expect if nomination is not None else None

    def kin(self, pod: str) -> Kin | None:
        """The kin that the nomination was made with; None when nothing was nominated."""
        expect = self.get(pod)
        if expect is None or not (expect.numa_nodes or expect.kin or expect.planned):
            return None
        return convert.kin_from(expect)

    def demands(self, pod: str) -> Mapping[str, Demand]:
        """The containers' true requests by name, where the extender sent them."""
        nomination = self._by_pod.get(pod)
        return nomination.demands if nomination is not None else NO_DEMANDS

    def budget(self, pod: str) -> PodBudget | None:
        """The pod's own CPU, where the extender has sent that it has any."""
        nomination = self._by_pod.get(pod)
        return nomination.budget if nomination is not None else None

    def lasts(self, pod: str, container: str) -> bool:
        """Whether the container runs as long as its pod, as far as is known."""
        nomination = self._by_pod.get(pod)
        settings = nomination.containers.get(container) if nomination is not None else None
        return settings is None or _lasts(settings)

    def opt_in(self, pod: str, container: str, own: OptIn) -> OptIn:
        """What the container asks for, with what its group's object says. own: by its annotations alone."""
        nomination = self._by_pod.get(pod)
        settings = nomination.containers.get(container) if nomination is not None else None
        return (
            convert.opt_in_from(settings, own) if settings is not None and (settings.policy or settings.size) else own
        )

    def workload(self, pod: str) -> str:
        """NAMESPACE/KIND/NAME of what owns the pod; empty when not known."""
        expect = self.get(pod)
        return expect.workload if expect is not None else ""

    def used_milli(self, pod: str) -> int:
        """What the extender knows that pods of its workload use; 0: nothing."""
        nomination = self._by_pod.get(pod)
        return nomination.used_milli if nomination is not None else 0

    def host_network(self, pod: str) -> bool | None:
        """Whether the pod is in the host's network, by its spec; None when not known."""
        expect = self.get(pod)
        return expect.host_network if expect is not None and expect.HasField("host_network") else None

    def pod_demand(self, pod: str, now: Mapping[str, Demand]) -> Demand | None:
        """now: by name the containers that ask for something else now than in the nomination. A pod that asks for
        something else than its containers do (pod-level resources) asks for that whatever they do.
        """
        nomination = self._by_pod.get(pod)
        if nomination is None or nomination.whole is None:
            return None
        if not now or not nomination.summed:
            return nomination.whole
        return _summed(nomination.containers, {**nomination.demands, **now})


def _leave_readable(expect: pb.Expect) -> None:
    for name in ("numa_nodes", "planned"):
        try:
            NumaSet.parse(getattr(expect, name))
        except PlacementError as bad:
            log.warning("a nomination's NUMA nodes are no list", pod=f"{expect.namespace}/{expect.name}", why=bad)
            expect.ClearField(name)


def _read(expect: pb.Expect) -> _Nomination:
    containers = {container.name: container for container in expect.containers}
    demands = {name: convert.demand_from(container.demand) for name, container in containers.items()}
    whole = convert.demand_from(expect.pod_demand).promised if expect.HasField("pod_demand") else None
    return _Nomination(
        expect,
        containers,
        demands,
        whole,
        summed=_summed(containers, demands) == whole,
        budget=_budget(expect, whole),
        used_milli=expect.pod_demand.used_milli,
    )


def _lasts(container: pb.ContainerDemand) -> bool:
    return container.restartable or not container.init


def _budget(expect: pb.Expect, whole: Demand | None) -> PodBudget | None:
    if not expect.budget or whole is None:
        return None
    lasting = filter(_lasts, expect.containers)
    return PodBudget.of(whole.cpu_milli, {container.name: container.slice for container in lasting})


def _renewed(before: pb.Expect, facts: pb.Expect) -> pb.Expect:
    """What was nominated before, with newer facts. Kin are those that the nomination was made with, or the newest."""
    after = pb.Expect()
    after.CopyFrom(facts)
    after.numa_nodes, after.generation = before.numa_nodes, before.generation
    if before.numa_nodes or not (facts.kin or facts.planned):
        after.ClearField("kin")
        after.kin.MergeFrom(before.kin)
        after.kin_elsewhere, after.room_milli, after.planned = before.kin_elsewhere, before.room_milli, before.planned
    return after


def _summed(containers: Mapping[str, pb.ContainerDemand], demands: Mapping[str, Demand]) -> Demand:
    return of_pod(
        [demands[name] for name, container in containers.items() if not container.init],
        [(demands[name], container.restartable) for name, container in containers.items() if container.init],
    )
