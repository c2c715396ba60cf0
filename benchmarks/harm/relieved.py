"""Played machines with the enforcer's own hook: its agent places the pods, and its relief reads every five seconds what
they use, lets members out and calls them home.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from benchmarks.harm.played import MACHINE, MOMENTS, PlayedMachine, PlayedPod
from benchmarks.harm.sharing import Sharer, fair
from enforcer.hook.agent import Agent
from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.relief import Relief
from enforcer.hook.wiring import REFRESH_EVERY_S
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.demand import shares_of
from numakin.placement.model.live_usage import Live
from numakin.placement.optin.parsing import GROUP_KEY
from numakin.wire import nri_pb2 as nri

READINGS = 4
"""Of each moment before it counts: fifteen seconds after the first, which knows of no use yet."""


class RelievedMachine(PlayedMachine):
    """Each moment lasts until its readings are over, and what counts is what each pod gets then."""

    def __init__(self) -> None:
        super().__init__()
        self._now, self._seconds, self._waited = 0.0, dict[str, float](), dict[str, float]()
        self._busy: Mapping[int, float] = {}
        facts = NodeFacts(
            MACHINE,
            CpuSet(),
            lambda _path: (CpuSet(), MACHINE.mems),
            lambda: {node.id: node.memory for node in MACHINE.numa_nodes},
            busy_cpus=lambda: self._busy,
            cpu_seconds=self._seconds.get,
            cpu_waited=self._waited.get,
        )
        self._agent = Agent(facts, Nominations())
        self._relief = Relief(self._agent.ledger, lambda: False, lambda: self._now)

    def take(self, pod: PlayedPod, used_milli: int) -> None:
        namespace, _, group = pod.group.partition("/")
        sandbox = nri.PodSandbox(id=pod.name, uid=pod.name, name=pod.name, namespace=namespace or "others")
        if group:
            sandbox.annotations[GROUP_KEY] = group
        container = nri.Container(id=pod.name, name="main", pod_sandbox_id=pod.name)
        container.linux.cgroups_path = pod.name
        container.linux.resources.cpu.shares.value = shares_of(pod.milli)
        if used_milli:
            self._agent.used({self._agent.ledger.demands.workload(sandbox): used_milli})
        self._agent.create_container(sandbox, container)
        self.pods.append(pod)
        self.requested += pod.milli
        self.masks = self._masks()
        self._agent.ledger.take_live(Live(used_cpu=self._used()))

    def _masks(self) -> list[int]:
        allocations, everywhere = self._agent.occupancy.allocations, MACHINE.cpu_nodes.mask
        return [
            MACHINE.nodes_of(cpus).mask if pod.group and (cpus := allocations[pod.name].cpus) else everywhere
            for pod in self.pods
        ]

    def ratios(self) -> Iterator[tuple[PlayedPod, float]]:
        everywhere = [MACHINE.cpu_nodes.mask] * len(self.pods)
        ours, theirs = list[Sequence[float]](), list[Sequence[float]]()
        for moment in range(MOMENTS):
            for _ in range(READINGS):
                self._read(moment)
            ours.append(self._shared(moment, self.masks))
            theirs.append(self._shared(moment, everywhere))
        for pod, got, free in zip(self.pods, zip(*ours, strict=True), zip(*theirs, strict=True), strict=True):
            yield pod, fmean(got) / fmean(free)

    def _read(self, moment: int) -> None:
        got = self._shared(moment, self.masks)
        self._now += REFRESH_EVERY_S
        for pod, cpus in zip(self.pods, got, strict=True):
            waits = 1 - cpus / pod.uses[moment]
            self._seconds[pod.name] = self._seconds.get(pod.name, 0.0) + REFRESH_EVERY_S * cpus
            self._waited[pod.name] = self._waited.get(pod.name, 0.0) + REFRESH_EVERY_S * waits
        self._busy = self._cpus_in_use(got)
        for step in self._relief.steps():
            step()
        self._agent.ledger.settle()
        self.masks = self._masks()

    def _shared(self, moment: int, masks: Sequence[int]) -> list[float]:
        cpus = {node: float(count) for node, count in MACHINE.cpu_counts.items() if count}
        return fair(
            cpus,
            [Sharer(pod.uses[moment], shares_of(pod.milli), mask) for pod, mask in zip(self.pods, masks, strict=True)],
        )

    def _cpus_in_use(self, got: Sequence[float]) -> dict[int, float]:
        """By CPU. Who may run on several NUMA nodes runs where most is idle, as the kernel's balance has it."""
        used = dict.fromkeys(MACHINE.cpu_nodes, 0.0)
        for mask, cpus in sorted(zip(self.masks, got, strict=True), key=lambda each: each[0].bit_count()):
            nodes = [node for node in used if mask >> node & 1]
            for node, more in _levelled({node: used[node] for node in nodes}, cpus).items():
                used[node] += more
        counts = MACHINE.cpu_counts
        return {cpu: min(1.0, used[node] / counts[node]) for node in used for cpu in MACHINE.node(node).cpus}


def _levelled(used: Mapping[int, float], more: float) -> dict[int, float]:
    """What is added to each where those with least are filled first; NUMA nodes of one size."""
    order = sorted(used, key=used.__getitem__)
    for count in range(len(order), 0, -1):
        level = (sum(used[node] for node in order[:count]) + more) / count
        if level >= used[order[count - 1]]:
            return {node: level - used[node] for node in order[:count]}
    return {}
