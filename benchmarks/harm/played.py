"""500 pods on five machines, placed by decide(), and the CPU that each gets over what it would get unpinned.

Pods are drawn from a seed: applications of some services, most of which have opted in as a group; what a workload uses
over what it asks for is log-normal, so that most use a fraction and a few many times that, and each pod's use varies
from moment to moment. kube-scheduler is played by the least requested machine that holds an application, in both
halves alike. CPU is shared as `sharing` has it, by the shares of the requests. Each life is played twice: by requests
alone, as on the first day, and with what workloads were seen to use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import fmean

from benchmarks.harm.sharing import Sharer, fair
from benchmarks.quality.scenario import machine_of
from numakin.placement.decide.decide import decide
from numakin.placement.decide.request import NO_KIN, Request
from numakin.placement.model.demand import Demand, counted, shares_of
from numakin.placement.model.live_usage import Live
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import OptIn
from numakin.placement.state.occupancy import Occupancy
from numakin.placement.traffic.cpu_use import ENOUGH, UseTally

PODS, MACHINES = 500, 5
MACHINE = machine_of(4)
LOADS = (0.5, 0.7, 0.9)
"""What all pods use together, as a share of the CPUs."""

REQUESTED = 0.75
"""What they ask for together."""

MOMENTS = 20
OPTED_IN = 0.6
REQUESTS_MILLI = (50, 100, 200, 500, 1000, 2000)
USE_SPREAD = 1.2
"""Of the logarithm of use over request: a pod in 40 uses ten times what the median one does."""

MOMENT_SPREAD = 0.4
MOST_CPUS = 8.0
"""That one pod has threads for."""


@dataclass(frozen=True, slots=True)
class PlayedPod:
    """uses: CPUs that it would use at each moment. group: empty where it has not opted in."""

    name: str
    workload: str
    application: str
    milli: int
    uses: tuple[float, ...]
    group: str = ""

    @property
    def use(self) -> float:
        return fmean(self.uses)


def drawn(load: float, seed: int) -> list[PlayedPod]:
    random = Random(f"{load}/{seed}")
    pods = [pod for number in range(PODS) for pod in _application(number, random)][:PODS]
    cpus = MACHINES * len(MACHINE.cpus)
    asked = cpus * 1000 * REQUESTED / sum(pod.milli for pod in pods)
    pods = [replace(pod, milli=max(10, round(pod.milli * asked))) for pod in pods]
    scale = load * cpus / sum(pod.use for pod in pods)
    return [replace(pod, uses=tuple(min(MOST_CPUS, use * scale) for use in pod.uses)) for pod in pods]


def _application(number: int, random: Random) -> Iterator[PlayedPod]:
    name, group = f"app-{number}", f"app-{number}/all" if random.random() < OPTED_IN else ""
    pods = []
    for service in range(random.randint(2, 8)):
        workload, milli = f"{name}/Deployment/{service}", random.choice(REQUESTS_MILLI)
        mean = milli / 1000 * random.lognormvariate(0, USE_SPREAD)
        for replica in range(random.randint(1, 4)):
            uses = tuple(mean * random.lognormvariate(0, MOMENT_SPREAD) for _ in range(MOMENTS))
            pods.append(PlayedPod(f"{workload}/{replica}", workload, name, milli, uses, group))
    random.shuffle(pods)
    yield from pods


@dataclass
class PlayedMachine:
    """With its pods in the order of their arrival; masks: of the NUMA nodes on which each may run."""

    machine: Machine = MACHINE
    occupancy: Occupancy = field(default_factory=Occupancy)
    pods: list[PlayedPod] = field(default_factory=list)
    masks: list[int] = field(default_factory=list)
    requested: int = 0

    def __post_init__(self) -> None:
        self.occupancy = self.occupancy.on(self.machine)

    def take(self, pod: PlayedPod, used_milli: int) -> None:
        """used_milli: what pods of its workload are known to use."""
        whole, mask = self.machine.cpu_nodes.mask, self.machine.cpu_nodes.mask
        if pod.group:
            demand = Demand(cpu_milli=pod.milli)
            whole = counted(demand, used_milli)
            request = Request(pod.name, pod.name, "main", OptIn(pod.group), demand, whole, workload=pod.workload)
            decision = decide(self.machine, self.occupancy, request, NO_KIN)
            self.occupancy = decision.applied(self.occupancy, request)
            mask = decision.numa_nodes.mask if decision.cpus else whole
        self.pods.append(pod)
        self.masks.append(mask)
        self.requested += pod.milli
        self.occupancy = self.occupancy.with_live(Live(used_cpu=self._used()))

    def _used(self) -> dict[int, int]:
        """Millicores in use on each NUMA node, those of the unpinned spread over all."""
        used = dict.fromkeys(self.machine.cpu_nodes, 0.0)
        for pod, mask in zip(self.pods, self.masks, strict=True):
            nodes = [node for node in used if mask >> node & 1]
            for node in nodes:
                used[node] += 1000 * pod.use / len(nodes)
        return {node: round(min(milli, 1000 * self.machine.cpu_counts[node])) for node, milli in used.items()}

    def got(self, masks: Sequence[int]) -> list[float]:
        """CPUs of each pod, the mean of all moments."""
        cpus = {node: float(count) for node, count in self.machine.cpu_counts.items() if count}
        moments = []
        for moment in range(MOMENTS):
            sharers = [
                Sharer(pod.uses[moment], shares_of(pod.milli), mask) for pod, mask in zip(self.pods, masks, strict=True)
            ]
            moments.append(fair(cpus, sharers))
        return [fmean(column) for column in zip(*moments, strict=True)]

    def ratios(self) -> Iterator[tuple[PlayedPod, float]]:
        """What each pod gets over what it gets where nobody is pinned."""
        whole = [self.machine.cpu_nodes.mask] * len(self.pods)
        yield from (
            (pod, ours / theirs)
            for pod, ours, theirs in zip(self.pods, self.got(self.masks), self.got(whole), strict=True)
        )


def seen(pods: Sequence[PlayedPod]) -> dict[str, int]:
    """What each workload was seen to use, in millicores, after windows enough."""
    tally = UseTally()
    for window in range(ENOUGH):
        for pod in pods:
            tally.add(pod.workload, 1000 * pod.uses[window % MOMENTS], 10.0 * window)
    return tally.known()


def played(
    load: float, seed: int, *, use_known: bool = True, machine: Callable[[], PlayedMachine] = PlayedMachine
) -> list[tuple[PlayedPod, float]]:
    """Each pod, and its ratio."""
    machines, homes = [machine() for _ in range(MACHINES)], dict[str, PlayedMachine]()
    most, pods = 1000 * len(MACHINE.cpus), drawn(load, seed)
    uses = seen(pods) if use_known else {}
    for pod in pods:
        home = homes.get(pod.application)
        if home is None or home.requested + pod.milli > most:
            home = homes[pod.application] = min(machines, key=lambda machine: machine.requested)
        home.take(pod, uses.get(pod.workload, 0))
    return [ratio for machine in machines for ratio in machine.ratios()]


def kinds(ratios: Sequence[tuple[PlayedPod, float]]) -> dict[str, list[float]]:
    """Of the pods that have opted in, and of the others."""
    return {
        kind: [ratio for pod, ratio in ratios if bool(pod.group) is opted_in]
        for kind, opted_in in (("opted in", True), ("not opted in", False))
    }
