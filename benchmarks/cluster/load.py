"""The workload generator: applications as Deployments of replicas that call each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.graphs.app import App, Service, app
from benchmarks.graphs.hotel_reservation import HOTEL_RESERVATION
from benchmarks.graphs.media_microservices import MEDIA_MICROSERVICES
from benchmarks.graphs.online_boutique import ONLINE_BOUTIQUE
from benchmarks.graphs.social_network import SOCIAL_NETWORK
from benchmarks.graphs.train_ticket import TRAIN_TICKET

APPS = (ONLINE_BOUTIQUE, HOTEL_RESERVATION, MEDIA_MICROSERVICES, SOCIAL_NETWORK)

LOADS = (1, 2, 4)
"""How much busier than its manifests an instance is: its requests are scaled by one of these."""

MIB = 1 << 20
MEMORY_PER_CPU = 1024 * MIB
LEAST_MEMORY = 128 * MIB

CROWD_MILLI = (1000, 1500, 2000, 3000, 4000, 6000)
"""Millicores; some request half a CPU more, and their exclusive CPUs are rounded up to whole ones."""

GROUP, SIZE, CPUS = "group.numakin.io", "size.numakin.io", "cpus.numakin.io"


@dataclass(frozen=True, slots=True)
class Instance:
    """One application in a namespace of its own. size: the annotated size of the group; 0: no annotation.

    exclusive: its members request exclusive CPUs.
    """

    namespace: str
    app: App
    scale: int = 1
    size: int = 0
    exclusive: bool = False

    def replicas(self, revision: int = 1) -> list[Replica]:
        """In the order of its manifests."""
        return [
            Replica(self, service, revision, index)
            for service in self.app.services
            for index in range(service.replicas)
        ]


@dataclass(frozen=True, slots=True)
class Replica:
    """One pod of an instance's Deployment. revision: of the pod template, from which its hash comes."""

    instance: Instance
    service: Service
    revision: int
    index: int

    @property
    def template_hash(self) -> str:
        return f"6d{self.revision:04x}f"

    @property
    def replica_set(self) -> str:
        return f"{self.service.name}-{self.template_hash}"

    @property
    def name(self) -> str:
        return f"{self.replica_set}-{self.index:05}"

    @property
    def namespace(self) -> str:
        return self.instance.namespace

    @property
    def uid(self) -> str:
        """As plays have it, without an API server."""
        return f"{self.namespace}/{self.name}"

    @property
    def workload(self) -> str:
        return f"{self.namespace}/Deployment/{self.service.name}"

    @property
    def cpu_milli(self) -> int:
        return self.service.cpu_milli * self.instance.scale

    @property
    def memory(self) -> int:
        """Bytes."""
        return max(LEAST_MEMORY, MEMORY_PER_CPU * self.cpu_milli // 1000)

    @property
    def labels(self) -> dict[str, str]:
        return {"app": self.service.name, "pod-template-hash": self.template_hash}

    @property
    def annotations(self) -> dict[str, str]:
        size = {SIZE: str(self.instance.size)} if self.instance.size else {}
        cpus = {CPUS: "exclusive"} if self.instance.exclusive else {}
        return {GROUP: self.instance.app.name, **size, **cpus}

    def body(self) -> dict[str, Any]:
        """The pod as its ReplicaSet's controller posts it."""
        requests = {"cpu": f"{self.cpu_milli}m", "memory": str(self.memory)}
        resources = {"requests": requests, "limits": {"memory": str(self.memory)}}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": self.replica_set, "uid": self.replica_set}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "labels": self.labels,
                "annotations": self.annotations,
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": {
                "containers": [{"name": self.service.name, "image": "example.invalid/app:1", "resources": resources}]
            },
        }


@dataclass(frozen=True, slots=True)
class Talk:
    """Two replicas' calls per 100 requests of the users; size: bytes of one."""

    source: Replica
    target: Replica
    calls: float
    size: int


def talks(replicas: Iterable[Replica]) -> list[Talk]:
    """Who calls whom among these: a service's calls are spread evenly over the replicas of both ends."""
    by_service: dict[tuple[str, str], list[Replica]] = {}
    for replica in replicas:
        by_service.setdefault((replica.namespace, replica.service.name), []).append(replica)
    instances = {replica.namespace: replica.instance for replicas in by_service.values() for replica in replicas[:1]}
    flows = []
    for namespace, instance in instances.items():
        for call in instance.app.calls:
            callers = by_service.get((namespace, call.source), [])
            called = by_service.get((namespace, call.target), [])
            share = call.calls / (len(callers) * len(called)) if callers and called else 0.0
            flows += [Talk(a, b, share, call.size) for a in callers for b in called if a != b]
    return flows


def wide() -> Instance:
    """An application that no NUMA node holds: its services are placed by their traffic."""
    return Instance("wide", TRAIN_TICKET, scale=6)


def instances(count: int, random: Random) -> list[Instance]:
    """Applications that are rolled out."""
    return [Instance(f"team-{number:03}", APPS[number % len(APPS)], random.choice(LOADS)) for number in range(count)]


def arrivals(apps: Iterable[Instance], random: Random) -> list[Replica]:
    """Every replica of these in a random order: they are rolled out at the same time."""
    replicas = [replica for instance in apps for replica in instance.replicas()]
    random.shuffle(replicas)
    return replicas


def in_turn(apps: Iterable[Instance]) -> list[Replica]:
    """Every replica of these, one application after the other."""
    return [replica for instance in apps for replica in instance.replicas()]


def burst(members: int) -> Instance:
    """One group whose members arrive at once: a coordinator and its workers."""
    services = [("coordinator", 1000, 1), ("worker", 250, members - 1)]
    return Instance("burst", app("pool", services, [("coordinator", "worker", 100.0, 4000)]), size=members)


def pairs(count: int) -> list[Instance]:
    """A client and its server each."""
    pair = app("pair", [("client", 250, 1), ("server", 250, 1)], [("client", "server", 100.0)])
    return [Instance(f"pair-{number:03}", pair) for number in range(count)]


def tens(count: int, prefix: str) -> list[Instance]:
    """A front end and nine workers each."""
    ten = app("ten", [("front", 250, 1), ("worker", 250, 9)], [("front", "worker", 100.0)])
    return [Instance(f"{prefix}-{number:03}", ten) for number in range(count)]


def crowd(members: int, random: Random) -> list[Replica]:
    """Groups of large members in a random order; the members of every third group have exclusive CPUs."""
    replicas: list[Replica] = []
    while len(replicas) < members:
        number = len(replicas)
        services = [(f"m{member}", random.choice(CROWD_MILLI), 1) for member in range(random.randint(3, 12))]
        calls = [(services[0][0], name, 100.0) for name, _, _ in services[1:]]
        group = app("crowd", services, calls)
        replicas += Instance(f"crowd-{number:04}", group, exclusive=number % 3 == 0).replicas()
    random.shuffle(replicas)
    return replicas


def together(place: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether both places (node, NUMA nodes) are wholly inside one same NUMA node."""
    return place == other and place[1].isdecimal()


def locality(replicas: Iterable[Replica], places: Mapping[Replica, tuple[str, str]]) -> float:
    """The share of calls inside one NUMA node, 0 to 1. places: node and NUMA nodes by replica."""
    rows = talks(replicas)
    total = sum(row.calls for row in rows)
    local = sum(row.calls for row in rows if together(places[row.source], places[row.target]))
    return local / total if total else 0.0
