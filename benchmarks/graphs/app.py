"""What a call graph is: services with their size, calls between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Service:
    """cpu_milli: of one replica, relative to the others (a scenario scales all). replicas: as deployed for a modest
    load.
    """

    name: str
    cpu_milli: int = 500
    replicas: int = 1


@dataclass(frozen=True, slots=True)
class Call:
    """calls: per 100 user requests. size: bytes of one call's request and answer together."""

    source: str
    target: str
    calls: float
    size: int = 600


@dataclass(frozen=True, slots=True)
class App:
    """A system. Services stand in the order in which its manifests start them."""

    name: str
    services: tuple[Service, ...]
    calls: tuple[Call, ...]

    def __post_init__(self) -> None:
        known = {service.name for service in self.services}
        if len(known) != len(self.services):
            raise ValueError(f"{self.name} has a service twice")
        for call in self.calls:
            if {call.source, call.target} - known:
                raise ValueError(f"{self.name}: {call.source} -> {call.target} names a service that it does not have")


Row = tuple[str, str, float] | tuple[str, str, float, int]


def app(name: str, services: Sequence[tuple[str, int, int]], calls: Sequence[Row]) -> App:
    """services: (name, milli-CPU, replicas). calls: (source, target, calls) or with bytes."""
    return App(name, tuple(Service(*service) for service in services), tuple(Call(*call) for call in calls))


def with_store(service: str, store: str, calls: float, size: int = 1200) -> Row:
    return service, store, calls, size
