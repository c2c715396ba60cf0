"""The same pods in the same order by what an operator would write: podAffinity by group over nodes, and the containers
placed on the node's NUMA nodes by a policy that knows no groups.

Played kindly: of the node's policies (the tightest NUMA node that fits, as nri-plugins' topology-aware has it; the
lowest; the emptiest) the one counts that suits the groups best.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from benchmarks.cluster.load import Replica
from benchmarks.cluster.nodes.population import NodeSpec
from benchmarks.groups.play import PENDING, Places
from lab.demo.numa_policies import LowestFirst, Spread
from lab.demo.pod_affinity import WEIGHT, PodAffinity
from lab.standins.scheduler.cache import Room
from lab.standins.scheduler.scheduler import DoesNotFitError, Scheduler


class Tightest(LowestFirst):
    """The NUMA node with the least room that holds the pod."""

    def fits_best(self, milli: int) -> int:
        fitting = [node for node, free in self.free.items() if free >= milli]
        return min(fitting, key=lambda node: (self.free[node], node), default=self.emptiest())


class Lowest(LowestFirst):
    def fits_best(self, milli: int) -> int:
        return next((node for node in sorted(self.free) if self.free[node] >= milli), self.emptiest())


class Emptiest(Spread):
    def fits_best(self, _milli: int) -> int:
        return self.emptiest()


POLICIES = (Tightest, Lowest, Emptiest)


def placed(
    specs: Sequence[NodeSpec],
    pods: Sequence[Replica],
    policy: type[Tightest | Lowest | Emptiest],
    seed: int,
    *,
    required: bool,
) -> Places:
    affinity = PodAffinity(required=required)
    rooms = {spec.name: spec.room for spec in specs}
    scheduler = Scheduler(rooms, affinity, filters=affinity, weight=WEIGHT, random=Random(seed), percentage=100)
    nodes = {spec.name: policy(spec.name, spec.machine) for spec in specs}
    for spec in specs:
        for other in spec.others:
            nodes[spec.name].free[other.numa_node] -= other.cpu_milli
    places: Places = {}
    for replica in pods:
        try:
            want = Room(replica.cpu_milli, replica.memory)
            choice = scheduler.schedule({"group": replica.namespace}, replica.workload, want)
        except DoesNotFitError:
            places[replica] = PENDING
            continue
        affinity.bound(replica.namespace, choice.node)
        node = nodes[choice.node]
        home = node.fits_best(replica.cpu_milli)
        # What no NUMA node holds runs on several.
        fits = node.free[home] >= replica.cpu_milli
        node.free[home] -= replica.cpu_milli
        places[replica] = choice.node, str(home) if fits else "several"
    return places
