"""The same shops in the same order without numakin: with nothing, and with what a good operator would write by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from lab.demo.locality import NOWHERE, Place
from lab.demo.numa_policies import Balloons, LowestFirst, Spread
from lab.demo.pod_affinity import WEIGHT, PodAffinity
from lab.demo.shop import Pod
from lab.standins.scheduler.cache import MOST_PODS, Room
from lab.standins.scheduler.scheduler import DoesNotFitError, Scheduler
from numakin.placement.model.topology import Machine


@dataclass(frozen=True, slots=True)
class Baseline:
    """numa: what places containers on a node. affinity: makes the rule over nodes; None for none.

    by_hand: what a user has to write and keep up to date. breaks: where it stops to help.
    """

    name: str
    numa: type[LowestFirst]
    affinity: Callable[[], PodAffinity] | None
    by_hand: str
    breaks: str


TERM = "a podAffinity term in every Deployment of a group"
PENDING = "what a group has beyond one node stays Pending"

BASELINES = (
    Baseline("lowest first", LowestFirst, None, "nothing", "groups are cut over nodes, then over NUMA nodes"),
    Baseline("spread", Spread, None, "nothing", "the same, and kin are never together but by chance"),
    Baseline(
        "preferred podAffinity, lowest first",
        LowestFirst,
        lambda: PodAffinity(required=False),
        TERM,
        "a full node cuts a group; NUMA nodes fill in the order of arrival",
    ),
    Baseline(
        "required podAffinity, lowest first",
        LowestFirst,
        lambda: PodAffinity(required=True),
        TERM,
        f"{PENDING}; NUMA nodes fill in the order of arrival",
    ),
    Baseline(
        "required podAffinity, balloons",
        Balloons,
        lambda: PodAffinity(required=True),
        f"{TERM}, and a balloon type for each group in the policy of every node",
        f"{PENDING}; a balloon beyond one NUMA node spreads all of its pods over two",
    ),
)


def rooms(machines: Mapping[str, Machine]) -> dict[str, Room]:
    """What each node has for pods."""
    return {
        name: Room(1000 * len(machine.cpus), sum(numa_node.memory for numa_node in machine.numa_nodes), MOST_PODS)
        for name, machine in machines.items()
    }


def placed(machines: Mapping[str, Machine], pods: Sequence[Pod], baseline: Baseline, seed: int) -> dict[Pod, Place]:
    """Every pod's place; NOWHERE for one that stays Pending."""
    affinity = baseline.affinity() if baseline.affinity is not None else None
    lots = Random(seed)  # noqa: S311 - lots, no secret
    scheduler = Scheduler(rooms(machines), affinity, filters=affinity, weight=WEIGHT, random=lots)
    nodes = {name: baseline.numa(name, machine) for name, machine in machines.items()}
    places = dict.fromkeys(pods, NOWHERE)
    for pod in pods:
        try:
            want = Room(pod.service.cpu_milli, pod.service.memory)
            choice = scheduler.schedule({"group": pod.shop}, pod.workload, want)
        except DoesNotFitError:
            continue
        nodes[choice.node].place(pod)
        if affinity is not None:
            affinity.bound(pod.shop, choice.node)
    for node in nodes.values():
        places |= node.places()
    return places
