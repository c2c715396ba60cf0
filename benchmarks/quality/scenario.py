"""What is placed: a machine, and services that fill a share of it, with the traffic between them. Same arguments,
same scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from itertools import count
from random import Random

from benchmarks.graphs.app import App
from benchmarks.graphs.hotel_reservation import HOTEL_RESERVATION
from benchmarks.graphs.media_microservices import MEDIA_MICROSERVICES
from benchmarks.graphs.online_boutique import ONLINE_BOUTIQUE
from benchmarks.graphs.shapes import clique, log_hub, power_law, sharded_store, star, trace_tree, training
from benchmarks.graphs.social_network import SOCIAL_NETWORK
from benchmarks.graphs.train_ticket import TRAIN_TICKET
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.traffic.graph import Amount, Costs

GRAPHS: Mapping[str, App | Callable[[Random], App]] = {
    "online-boutique": ONLINE_BOUTIQUE,
    "social-network": SOCIAL_NETWORK,
    "hotel-reservation": HOTEL_RESERVATION,
    "media-microservices": MEDIA_MICROSERVICES,
    "train-ticket": TRAIN_TICKET,
    "clique": clique,
    "star": star,
    "power-law": power_law,
    "log-hub": log_hub,
    "training": training,
    "sharded-store": sharded_store,
    "trace-tree": trace_tree,
}
SHAPES = {2: (2, 20), 4: (2, 20), 8: (2, 16), 16: (4, 16), 32: (8, 16)}
"""Machines by their number of NUMA nodes: (sockets, CPUs of a NUMA node)."""

NUMA_NODES = tuple(SHAPES)
FILLS = (0.5, 0.7, 0.9)

NEIGHBOUR, OTHER_SOCKET = 12, 32
"""SLIT distances within a socket and across, as an EPYC in NPS4 mode reports them."""

MEMORY_PER_CPU = 4 << 30
ROUNDED_TO = 50
"""Milli-CPU to which requests are rounded."""

APPLICATION_SIZE = (0.8, 3.0)
"""CPU of one instance of a known system, in NUMA nodes: most don't fit one."""

SMALLEST = 0.3
"""The smallest instance, in NUMA nodes: what the fill has no room for of the last one is left out."""

LEAST_REPLICA_MILLI = 500
"""Replicas of a known system are so many that they ask for this at least, on average: a node seldom runs more than 250
pods.
"""

NEIGHBOURLY = 0.3
"""Chance that an application calls the one beside it (a shared gateway, a metrics scraper), at a twentieth of its own
heaviest edge.
"""

CALLS_PER_S = 50.0
"""User requests a second of an application are this times a log-normal factor."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Service:
    """A workload: one replica's demand, and how many replicas."""

    name: str
    demand: Demand
    replicas: int


@dataclass(frozen=True)
class Scenario:
    """traffic: what two workloads exchange a second, all replicas together, spread evenly over them. Services are in
    the order of their manifests. containers: of each pod, placed as one, or one by one where they are several.
    """

    name: str
    machine: Machine
    services: tuple[Service, ...]
    traffic: Mapping[Pair, Amount] = field(hash=False)
    containers: int = 1

    @cached_property
    def digest(self) -> str:
        """Equal for equal machines, members and traffic."""
        lines = [
            f"{service.name} {service.demand.cpu_milli} {service.demand.memory} {service.replicas}"
            for service in self.services
        ]
        lines += [f"{a} {b} {weight:.6g}" for (a, b), weight in sorted(self.weights.items())]
        return blake2b("\n".join([self.machine.name, *lines]).encode(), digest_size=8).hexdigest()

    @cached_property
    def by_name(self) -> dict[str, Service]:
        return {service.name: service for service in self.services}

    @cached_property
    def weights(self) -> dict[Pair, float]:
        """What crossing costs, by the documented constants: what locality is measured in."""
        costs = Costs()
        return {pair: costs.weight("tcp", rate) for pair, rate in self.traffic.items()}

    def with_replicas(self, replicas: Mapping[str, int]) -> Scenario:
        return replace(
            self, services=tuple(replace(service, replicas=replicas.get(service.name, 0)) for service in self.services)
        )


def machine_of(numa_nodes: int) -> Machine:
    """A machine of that many NUMA nodes, evenly on its sockets."""
    sockets, cpus = SHAPES[numa_nodes]
    per_socket = numa_nodes // sockets
    nodes = []
    for index in range(numa_nodes):
        distances = {
            other: 10 if other == index else NEIGHBOUR if other // per_socket == index // per_socket else OTHER_SOCKET
            for other in range(numa_nodes)
        }
        own = CpuSet.of(range(index * cpus, (index + 1) * cpus))
        nodes.append(NumaNode(index, own, cpus * MEMORY_PER_CPU, distances))
    return Machine(tuple(nodes), name=f"{sockets} sockets, {numa_nodes} NUMA nodes, {cpus} CPUs each")


def scenario(graph: str, numa_nodes: int, fill: float, seed: int = 0) -> Scenario:
    """Instances of the graph, side by side, until their requests are `fill` of the machine's CPUs."""
    random = Random(f"{graph}/{numa_nodes}/{fill}/{seed}")
    machine = machine_of(numa_nodes)
    node_milli = len(machine.cpus) * 1000 // numa_nodes
    left = int(len(machine.cpus) * 1000 * fill)
    services: list[Service] = []
    traffic: dict[Pair, Amount] = {}
    heaviest: list[tuple[str, Amount]] = []
    for number in count():
        sized = _fitted(_instance(graph, node_milli, left, random), left)
        if not sized.services:
            break
        added = _added(sized, number, random)
        services += added[0]
        left -= sum(service.demand.cpu_milli * service.replicas for service in added[0])
        traffic |= added[1]
        if added[1]:
            pair, rate = max(added[1].items(), key=lambda edge: (edge[1].messages, edge[0]))
            if heaviest and random.random() < NEIGHBOURLY:
                traffic[_pair(heaviest[-1][0], pair[0])] = Amount(rate.bytes / 20, rate.messages / 20)
            heaviest.append((pair[0], rate))
    return Scenario(f"{graph}, {numa_nodes} NUMA nodes, {fill:.0%}", machine, tuple(services), traffic)


def _instance(graph: str, node_milli: int, left: int, random: Random) -> App:
    """left: millicores; a known system is made no larger than that, unless it would be tiny."""
    source = GRAPHS[graph]
    if not isinstance(source, App):
        return source(random)
    size = min(random.uniform(*APPLICATION_SIZE) * node_milli, max(left, SMALLEST * node_milli))
    replicas = sum(service.replicas for service in source.services)
    times = random.randint(1, max(1, min(3, int(size / LEAST_REPLICA_MILLI / replicas))))
    whole = times * sum(service.cpu_milli * service.replicas for service in source.services)
    # No replica may ask for more than two fifths of a NUMA node: larger ones belong to other tests.
    services = [
        replace(
            service,
            cpu_milli=min(_rounded(service.cpu_milli * size / whole), node_milli * 2 // 5),
            replicas=service.replicas * times,
        )
        for service in source.services
    ]
    return replace(source, services=tuple(services))


def _fitted(app: App, left: int) -> App:
    """Without the services that the machine's fill has no room for."""
    kept = []
    for service in app.services:
        replicas = min(service.replicas, left // service.cpu_milli)
        if replicas:
            kept.append(replace(service, replicas=replicas))
            left -= replicas * service.cpu_milli
    names = {service.name for service in kept}
    return App(app.name, tuple(kept), tuple(c for c in app.calls if c.source in names and c.target in names))


def _added(app: App, number: int, random: Random) -> tuple[list[Service], dict[Pair, Amount]]:
    load = CALLS_PER_S * random.lognormvariate(0, 0.7) / 100
    services = []
    for service in app.services:
        memory = service.cpu_milli * random.choice((1, 2, 3)) * (1 << 30) // 1000
        demand = Demand(cpu_milli=service.cpu_milli, memory=memory, memory_limit=memory)
        services.append(Service(f"shop-{number}/Deployment/{service.name}", demand, service.replicas))
    traffic: dict[Pair, Amount] = {}
    for call in app.calls:
        pair = _pair(f"shop-{number}/Deployment/{call.source}", f"shop-{number}/Deployment/{call.target}")
        # A call is two messages: request and answer.
        amount = Amount(load * call.calls * call.size, 2 * load * call.calls)
        traffic[pair] = traffic.get(pair, Amount()).plus(amount)
    return services, traffic


def _pair(a: str, b: str) -> Pair:
    return min(a, b), max(a, b)


def _rounded(milli: float) -> int:
    return max(ROUNDED_TO, round(milli / ROUNDED_TO) * ROUNDED_TO)
