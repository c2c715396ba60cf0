"""Online Boutique (GoogleCloudPlatform/microservices-demo): its eleven services, who calls whom, and some shops of it.

Calls per page are counted from the public source: the frontend's home, product and cart pages each ask for the
currencies, the cart and products; a checkout asks every service it needs. Weights are calls per user and minute at
the load generator's default mix, rounded. Requests are those of a shop under load, not the demo's own (which fit
anywhere).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Service:
    """One Deployment: replicas, and what each asks for."""

    name: str
    replicas: int
    cpu_milli: int
    memory: int


SERVICES = (
    Service("frontend", 3, 2000, 256 * MIB),
    Service("productcatalog", 2, 1500, 256 * MIB),
    Service("currency", 2, 1500, 128 * MIB),
    Service("cart", 2, 1500, 512 * MIB),
    Service("redis-cart", 1, 1500, 1024 * MIB),
    Service("recommendation", 1, 1500, 450 * MIB),
    Service("ad", 1, 1000, 300 * MIB),
    Service("checkout", 1, 1000, 128 * MIB),
    Service("shipping", 1, 500, 128 * MIB),
    Service("payment", 1, 500, 128 * MIB),
    Service("email", 1, 500, 128 * MIB),
)

CALLS = {
    ("frontend", "currency"): 26.0,
    ("frontend", "productcatalog"): 22.0,
    ("recommendation", "productcatalog"): 11.0,
    ("frontend", "cart"): 13.0,
    ("cart", "redis-cart"): 14.0,
    ("frontend", "recommendation"): 11.0,
    ("frontend", "ad"): 9.0,
    ("frontend", "shipping"): 3.0,
    ("frontend", "checkout"): 1.0,
    ("checkout", "productcatalog"): 3.0,
    ("checkout", "currency"): 4.0,
    ("checkout", "cart"): 2.0,
    ("checkout", "shipping"): 2.0,
    ("checkout", "payment"): 1.0,
    ("checkout", "email"): 1.0,
}

TEMPLATE = "5f8b6"
"""The hash that a Deployment's controller puts into the names of its pods."""

SHOPS = ("berlin", "lagos", "lima", "osaka")


@dataclass(frozen=True, slots=True)
class Pod:
    """One replica of one shop's service."""

    shop: str
    service: Service
    index: int

    @property
    def replica_set(self) -> str:
        return f"{self.service.name}-{TEMPLATE}"

    @property
    def name(self) -> str:
        return f"{self.replica_set}-{self.index}"

    @property
    def workload(self) -> str:
        return f"{self.shop}/{self.service.name}"


def arrivals(seed: int, times: int = 1) -> list[Pod]:
    """Every pod of every shop, in a random order: the shops are rolled out at the same time. times: more replicas."""
    pods = [
        Pod(shop, service, index) for shop in SHOPS for service in SERVICES for index in range(times * service.replicas)
    ]
    random.Random(seed).shuffle(pods)  # noqa: S311 - an order, no secret
    return pods


def calls(pods: Sequence[Pod]) -> list[tuple[Pod, Pod, float]]:
    """Who calls whom among these pods: a service's calls are spread over the replicas of both ends."""
    by_service: dict[tuple[str, str], list[Pod]] = {}
    for pod in pods:
        by_service.setdefault((pod.shop, pod.service.name), []).append(pod)
    edges = []
    for shop in SHOPS:
        for (source, target), weight in CALLS.items():
            callers, called = by_service.get((shop, source), []), by_service.get((shop, target), [])
            share = weight / (len(callers) * len(called)) if callers and called else 0.0
            edges += [(a, b, share) for a in callers for b in called]
    return edges
