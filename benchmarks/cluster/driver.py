"""The cluster as a whole, and what can be done in it: pods are placed, ended, and exchange traffic."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.cluster.control.control_plane import ControlPlane
from benchmarks.cluster.control.extender import MeasuredExtender, TimedClient, until
from benchmarks.cluster.control.kube import Kube
from benchmarks.cluster.load import Replica, locality, talks
from benchmarks.cluster.nodes.fleet import Fleet, Terms
from benchmarks.cluster.nodes.node import Landing, Order
from benchmarks.cluster.nodes.observers import Calls
from benchmarks.cluster.nodes.population import population
from benchmarks.cluster.nodes.remote import Remote
from lab.standins.all_or_nothing import AllOrNothing
from lab.standins.scheduler.binding import Binder
from lab.standins.scheduler.cache import Room
from lab.standins.scheduler.extender_client import ExtenderClient
from lab.standins.scheduler.scheduler import DoesNotFitError, Scheduler
from numakin.placement.decide.kin_share import homes
from numakin.placement.model.cpuset import NumaSet

WATCH_WITHIN_S = 120.0
"""How long an extender that watches the API server may take to begin with it."""

CLIENT_S = 30.0
"""kube-scheduler would give up sooner; here a slow answer is measured."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to simulate. percentage: kube-scheduler's percentageOfNodesToScore, 0 for its default.

    burst: members of the group that comes at once. lockstep: in a burst too each step waits for what the one before
    has caused, so that the placements are the same in every run. together: the pods of the first scenario, steady, are
    all created before one is scheduled. extender_options: as `numakin-extender` takes them.
    """

    nodes: int
    seed: int = 1
    percentage: int = 0
    heartbeat_s: float = 5.0
    kubelet_s: float = 1.0
    burst: int = 200
    lockstep: bool = False
    together: bool = False
    extender_options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that was scheduled."""

    replica: Replica
    uid: str
    node: str
    ip: str
    bound_at: float


class Cluster(AllOrNothing):
    """A context manager. watched: whether the extender follows the API server; without, nothing is ever nominated.

    chosen: the node of each pod that was scheduled, bound or not. offered: the nodes of the last pod's question.
    hidden: pods whose group was placed already, but on none of the nodes that kube-scheduler offered. pending: pods
    that fitted nowhere. missing: what could not be shown.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.plan, self._folder = plan, folder
        self.random = Random(plan.seed)
        self.specs = {spec.name: spec for spec in population(plan.nodes, self.random)}
        self.pods: dict[Replica, Pod] = {}
        self.places: dict[Replica, tuple[str, str]] = {}
        self.chosen: dict[Replica, str] = {}
        self.offered: Sequence[str] = ()
        self.landings: list[Landing] = []
        self.missing: list[str] = []
        self.watched = False
        self.hidden = self.pending = 0
        self._addresses = 0

    def _start(self) -> None:
        kubeconfig = self._folder / "kubeconfig"
        control_plane = self._remote(ControlPlane, kubeconfig, list(self.specs))
        self.kube = Kube(control_plane.call("url"))
        self._stack.callback(self.kube.close)
        options = ("--kubeconfig", str(kubeconfig), *self.plan.extender_options)
        self.extender = MeasuredExtender(self._folder, options)
        self._stack.callback(self.extender.end)
        self.extender.start()
        self.watched = control_plane.call("watched", WATCH_WITHIN_S)
        if not self.watched:
            self.missing.append("nominations: the extender does not watch the API server")
        kubelet_s = self.plan.kubelet_s if self.watched else 0.0
        terms = Terms(self.extender.grpc, kubelet_s=kubelet_s, heartbeat_s=self.plan.heartbeat_s)
        self.fleet = self._remote(Fleet, list(self.specs.values()), terms)
        self.fleet.call("dial")
        self.settled()
        self.client = TimedClient(ExtenderClient(self.extender.http, CLIENT_S))
        self._stack.callback(self.client.close)
        rooms = {name: spec.room for name, spec in self.specs.items()}
        lots = Random(self.plan.seed)
        self.scheduler = Scheduler(rooms, self.client, random=lots, percentage=self.plan.percentage)
        self.binder = self._stack.enter_context(Binder(lots))

    def _remote(self, make: Callable[..., object], *arguments: object) -> Remote:
        remote = Remote(make, *arguments)
        self._stack.callback(remote.close)
        return remote

    def settled(self) -> None:
        """Every node has reported everything, and the extender counts it as live."""
        silent = self.fleet.call("settled")
        if silent:
            raise RuntimeError(f"{len(silent)} enforcers have not reported, the first is {silent[0]}")
        until(lambda: self.extender.live() == len(self.specs), "not every node is live")

    def place(self, replicas: Iterable[Replica]) -> list[Landing]:
        """One after the other: the extender knows all of a pod's start before the next is scheduled."""
        return [landing for replica in replicas for landing in self.run(self.schedule([replica]))]

    def schedule(self, replicas: Iterable[Replica]) -> list[Pod]:
        """All are created, then one after the other is scheduled, while bindings of those before are still on their
        way; returns when all are bound. One that fits nowhere stays pending.
        """
        bodies = [(replica, self.kube.create_pod(replica.namespace, replica.body())) for replica in replicas]
        bindings = [binding for replica, body in bodies if (binding := self._scheduled(replica, body)) is not None]
        return [self._bound(binding.result()) for binding in bindings]

    def _scheduled(self, replica: Replica, body: dict[str, Any]) -> Future[Pod] | None:
        try:
            choice = self.scheduler.schedule(body, replica.workload, _room(replica))
        except DoesNotFitError:
            self.pending += 1
            return None
        kin = {node for other, node in self.chosen.items() if other.namespace == replica.namespace}
        self.hidden += bool(kin) and kin.isdisjoint(choice.offered)
        self.offered, self.chosen[replica] = choice.offered, choice.node
        self._addresses += 1
        address = f"10.{self._addresses >> 16}.{self._addresses >> 8 & 255}.{self._addresses & 255}"
        binding = self.binder.bind(partial(self._bind, replica, body["metadata"]["uid"], choice.node, address))
        if self.plan.lockstep:
            pod = binding.result()
            self.fleet.call("nominated", pod.node, pod.uid, pod.bound_at)
        return binding

    def _bind(self, replica: Replica, uid: str, node: str, address: str) -> Pod:
        """On one of the binder's threads."""
        self.kube.bind(replica.namespace, replica.name, node)
        return Pod(replica, uid, node, address, time.monotonic())

    def _bound(self, pod: Pod) -> Pod:
        self.pods[pod.replica] = pod
        return pod

    def run(self, pods: Sequence[Pod]) -> list[Landing]:
        """What the kubelets do with bound pods."""
        landings: list[Landing] = self.fleet.call("run", [_order(pod) for pod in pods])
        for pod, landing in zip(pods, landings, strict=True):
            self.places[pod.replica] = (landing.node, landing.numa_nodes)
            self.kube.running(pod.replica.namespace, pod.replica.name, pod.ip)
        self.landings += landings
        return landings

    def end(self, replicas: Iterable[Replica]) -> None:
        """Deleted, and their containers stopped."""
        pods = [self.pods.pop(replica) for replica in replicas]
        self.fleet.call("stop", [(pod.node, pod.uid) for pod in pods])
        for pod in pods:
            self.kube.delete_pod(pod.replica.namespace, pod.replica.name)
            self.scheduler.forget(pod.node, pod.replica.workload, _room(pod.replica))
            del self.places[pod.replica], self.chosen[pod.replica]

    def talk(self, replicas: Iterable[Replica], *, requests: float, seconds: float, windows: int) -> None:
        """In each window these pods serve so many hundreds of their users' requests, and observers report it."""
        calls = [
            Calls(
                client=self.pods[talk.source].uid,
                client_ip=self.pods[talk.source].ip,
                server=self.pods[talk.target].uid,
                service_ip=service_ip(talk.target),
                bytes=round(talk.calls * requests * talk.size),
                count=max(1, round(talk.calls * requests)),
            )
            for talk in talks(replicas)
        ]
        for _ in range(windows):
            self.fleet.call("talk", calls, seconds)

    def lose(self, nodes: Sequence[str]) -> list[Replica]:
        """Nodes lose power, and the control plane gives them up; the pods that were there."""
        self.fleet.call("lose", nodes)
        self.scheduler.remove(nodes)
        for name in nodes:
            del self.specs[name]
            self.kube.delete_node(name)
        gone = [lost for lost, pod in self.pods.items() if pod.node in nodes]
        self.end(gone)
        return gone

    def reconnect(self) -> None:
        """kube-scheduler's connection, after the extender went away."""
        self.client.close()
        self.client.client = ExtenderClient(self.extender.http, CLIENT_S)

    def locality(self, replicas: Iterable[Replica] | None = None) -> float:
        """Of these replicas' calls; of all that run by default."""
        return locality(self.places if replicas is None else replicas, self.places)

    def nearness(self, replica: Replica, place: tuple[str, str]) -> float:
        """Of a replica at this place: the mean closeness to those that it calls or that call it, by calls. 1: all in
        the same NUMA node; on one machine as the SLIT distance has it, on two 0.
        """
        others = [placed for placed in self.places if placed.namespace == replica.namespace and placed != replica]
        mine = [talk for talk in talks([*others, replica]) if replica in (talk.source, talk.target)]
        total = sum(talk.calls for talk in mine)
        peers = ((talk.target if talk.source == replica else talk.source, talk.calls) for talk in mine)
        near = sum(calls * self._closeness(place, self.places[peer]) for peer, calls in peers)
        return near / total if total else 0.0

    def _closeness(self, place: tuple[str, str], other: tuple[str, str]) -> float:
        """Between NUMA nodes; one that is spread over several is evenly on their CPUs."""
        if place[0] != other[0]:
            return 0.0
        machine = self.specs[place[0]].machine
        pairs = product(
            homes(machine, NumaSet.parse(place[1])).items(), homes(machine, NumaSet.parse(other[1])).items()
        )
        return sum(share * part * machine.closeness(a, b) for (a, share), (b, part) in pairs)

    def with_room(self, replica: Replica) -> list[tuple[str, str]]:
        """The places with room for it, on the nodes where others of its namespace are."""
        nodes = sorted({node for placed, (node, _) in self.places.items() if placed.namespace == replica.namespace})
        candidates = self.fleet.call("could_hold", nodes, replica.cpu_milli, replica.memory)
        return [(node, str(numa_node)) for node, numa_nodes in candidates.items() for numa_node in numa_nodes]

    def digest(self) -> str:
        """Of all placements."""
        rows = sorted((replica.namespace, replica.name, *place) for replica, place in self.places.items())
        return blake2b(repr(rows).encode(), digest_size=8).hexdigest()


def service_ip(replica: Replica) -> str:
    """The address of the Service before its Deployment, by which all others know it."""
    first, second = blake2b(replica.workload.encode(), digest_size=2).digest()
    return f"10.96.{first}.{second}"


def _room(replica: Replica) -> Room:
    return Room(replica.cpu_milli, replica.memory)


def _order(pod: Pod) -> Order:
    replica = pod.replica
    return Order(
        node=pod.node,
        uid=pod.uid,
        namespace=replica.namespace,
        name=replica.name,
        container=replica.service.name,
        annotations=replica.annotations,
        labels=replica.labels,
        cpu_milli=replica.cpu_milli,
        memory=replica.memory,
        ip=pod.ip,
        bound_at=pod.bound_at,
    )
