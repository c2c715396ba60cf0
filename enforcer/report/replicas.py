"""Every replica of the extender gets reports: one stream to each address that the configured names have now."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from enforcer.report.stream import Endpoint, ReportStream
from enforcer.settings.config import MOST_REPLICAS
from numakin.process.log import Log
from numakin.process.threads import Threaded, Threads
from numakin.wire import report_pb2 as pb

log = Log("observer.replicas")

RESOLVE_EVERY_S = 30.0
SOONEST_S = 1.0
"""Between two looks at the names while streams break: half of what a dial waits on average."""

STALE_AFTER_S = 4 * RESOLVE_EVERY_S

STOP_S = 2.0
"""For each stream, at the end."""

Resolve = Callable[[str], tuple[str, ...]]
"""From HOST:PORT to the addresses, IP:PORT; OSError when the name can't be resolved now."""


@dataclass(frozen=True, slots=True)
class KnownReplica:
    """The addresses of each configured HOST:PORT, as far as they were ever resolved."""

    addresses: Mapping[str, tuple[str, ...]]

    def after(self, name: str, addresses: Collection[str]) -> KnownReplica:
        """A name without any address is a failure of the name service, not the end of all replicas."""
        return replace(self, addresses={**self.addresses, name: tuple(addresses)}) if addresses else self

    def wanted(self, opened: Collection[str]) -> dict[str, str]:
        """The addresses to stream to, each with its name: those that are open already first, MOST_REPLICAS in all."""
        every = {address: name for name, addresses in self.addresses.items() for address in addresses}
        ranked = sorted(every, key=lambda address: (address not in opened, address))
        return {address: every[address] for address in ranked[:MOST_REPLICAS]}

    @property
    def left_out(self) -> int:
        return max(0, len({address for addresses in self.addresses.values() for address in addresses}) - MOST_REPLICAS)


def split(address: str) -> tuple[str, str]:
    """Host and port; an IPv6 host is in brackets."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), port


def resolve(name: str) -> tuple[str, ...]:
    """Of one address family alone: a replica with two addresses must not get everything twice."""
    host, port = split(name)
    try:
        results = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)
    except UnicodeError as bad:
        raise OSError(f"it can be no name: {bad}") from bad
    return tuple(dict.fromkeys(_joined(str(to[0]), port) for family, *_, to in results if family == results[0][0]))


class Replicas(Threaded):
    """A thread of its own; the methods may be called from any. stream: makes one for an endpoint; the second argument
    is to be called when it breaks.
    """

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        stream: Callable[[Endpoint, Callable[[], None]], ReportStream],
        resolve: Resolve = resolve,
        *,
        threads: Threads,
    ) -> None:
        self._endpoints = {endpoint.address: endpoint for endpoint in endpoints}
        self._stream, self._resolve = stream, resolve
        self._known = KnownReplica({})
        self._streams: dict[str, ReportStream] = {}
        self._unresolved = ""
        self._look = threading.Event()
        self._thread = threads.thread(
            "replicas", self._round, wake=self._look.set, last=self._end, stale_after_s=STALE_AFTER_S
        )

    @property
    def connected(self) -> int:
        """How many replicas have a stream to us."""
        return sum(stream.connected for stream in self._streams.values())

    @property
    def trouble(self) -> str:
        """Why a replica has no stream to us, of one of them; empty where nothing has failed yet."""
        return next((f"{at}: {each.trouble}" for at, each in self._streams.items() if each.trouble), self._unresolved)

    @property
    def skewed(self) -> int:
        """How many of these speak another report format."""
        return sum(stream.connected and stream.skewed for stream in self._streams.values())

    def changed(self) -> None:
        for stream in self._streams.values():
            stream.changed()

    def send(self, message: pb.FromEnforcer) -> None:
        """Sends a message that is not the mirror's to each replica; dropped where there is no stream."""
        for stream in self._streams.values():
            stream.send(message)

    def _round(self) -> None:
        self._look.clear()
        self._keep(self._resolved())
        self._look.wait(RESOLVE_EVERY_S)
        self._thread.stopping.wait(SOONEST_S)

    def _end(self) -> None:
        open_streams = self._streams
        self._keep({})
        for stream in open_streams.values():
            stream.stop(STOP_S)

    def _resolved(self) -> dict[str, str]:
        self._unresolved = ""
        for name in self._endpoints:
            try:
                self._known = self._known.after(name, self._resolve(name))
            except OSError as error:
                self._unresolved = f"{name}: {error}"
                log.warning("the extender's name can't be resolved", name=name, error=error)
        if self._known.left_out:
            log.warning("too many replicas of the extender", most=MOST_REPLICAS, left_out=self._known.left_out)
        return self._known.wanted(self._streams)

    def _keep(self, wanted: Mapping[str, str]) -> None:
        """Opens and closes streams so that there is one to each wanted address."""
        for address in wanted.keys() - self._streams.keys():
            self._streams = {**self._streams, address: self._opened(address, wanted[address])}
        unwanted = self._streams.keys() - wanted.keys()
        ending = [self._streams[address] for address in unwanted]
        self._streams = {address: self._streams[address] for address in wanted}
        for stream in ending:
            stream.stop()

    def _opened(self, address: str, name: str) -> ReportStream:
        told_name = "" if address == name else split(name)[0]
        stream = self._stream(replace(self._endpoints[name], address=address, name=told_name), self._look.set)
        stream.start()
        return stream


def _joined(host: str, port: str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
