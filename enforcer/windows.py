"""Windows of traffic: what the collectors saw in some seconds, attributed to pods. The live source, and a recorded
one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from enforcer.log import Log
from enforcer.observe import addresses, shared_memory, unix_sockets, wakeups
from enforcer.observe.attribution import attribute
from enforcer.observe.chain import Refusal, Sources, cgroup_root, choose
from enforcer.observe.collector import Collector
from enforcer.observe.duty import DutyCycle
from enforcer.observe.edges import Attribution, Edge, Local
from enforcer.observe.loader import Refused
from enforcer.observe.processes import find_container
from enforcer.observe.residents import LocalContainer, Residents
from enforcer.observe.watch import Reading, Watch
from placement.traffic import Flow
from proto import local_pb2 as local

log = Log("observer.traffic")

HOST = 1
"""A process in the node's own network namespace."""

SHARED_MEMORY_EVERY = 6
"""Windows between two looks at shared mappings, which change rarely: a minute at the default window."""


class BadRecording(ValueError):
    """A recorded file that can't be read, with the line."""


@dataclass(frozen=True, slots=True)
class Window:
    """seconds: how long it covers. scale: 1 / duty cycle where counts are scaled samples, which they then already
    are.
    """

    seconds: float
    flows: tuple[Flow, ...] = ()
    scale: float = 1.0
    unattributed_bytes: int = 0
    lost_bytes: int = 0

    def to_json(self) -> str:
        return json.dumps(
            {
                "seconds": self.seconds,
                "scale": self.scale,
                "unattributed_bytes": self.unattributed_bytes,
                "lost_bytes": self.lost_bytes,
                "flows": [list(one) for one in self.flows],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Window:
        """BadRecording when it is no window."""
        try:
            fields = json.loads(text)
            flows = tuple(
                Flow(str(source), str(target), str(kind), int(size), int(messages), any(by_server))
                for source, target, kind, size, messages, *by_server in fields["flows"]
            )
            return cls(
                float(fields["seconds"]),
                flows,
                float(fields["scale"]),
                int(fields["unattributed_bytes"]),
                int(fields["lost_bytes"]),
            )
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise BadRecording(f"not a recorded window: {error!r}") from error


@dataclass(slots=True)
class Live:
    """The kernel's traffic. Call `step` when it asks to be called, `window` at the end of each window.

    clock: read once, when the programs are loaded, which takes seconds on a busy machine: windows begin then.
    """

    duty: DutyCycle
    clock: Callable[[], float]
    collector: str = ""
    refusals: tuple[Refusal, ...] = ()
    _watch: Watch = field(init=False)
    _residents: Residents = field(default_factory=Residents)
    _namespaces: tuple[Path, ...] = ()
    _windows: int = 0
    _containers: tuple[local.LocalContainer, ...] = ()

    def __post_init__(self) -> None:
        choice = choose(Sources(cgroup_root(), lambda: self._namespaces))
        self.collector, self.refusals = choice.collector.name, choice.refusals
        for one in choice.refusals:
            log.info("a better way to see traffic is refused here", way=one.name, reason=one.reason)
        collectors = [choice.collector, *self._besides()]
        log.info("traffic is observed", by=", ".join(one.name for one in collectors), share_of_time=self.duty.share)
        self._watch = Watch(collectors, self.duty, self.clock())

    def hear(self, containers: Iterable[local.LocalContainer]) -> None:
        """The node's containers as they are now; their processes and cgroups are looked at anew at each window."""
        self._containers = tuple(containers)
        self._look()

    def step(self, now: float) -> float:
        return self._watch.step(now)

    def window(self, now: float) -> Window:
        reading = self._watch.read(now)
        self._look()
        attribution = attribute(reading.delta.counters, self._residents)
        edges = list(attribution.edges)
        if self._windows % SHARED_MEMORY_EVERY == 0:
            edges += shared_memory.scan(self._residents.current)
        self._windows += 1
        self._residents = self._residents.aged()
        return _window(reading, attribution, edges)

    def close(self) -> None:
        self._watch.close()

    def _look(self) -> None:
        root = cgroup_root()
        live = [one for one in self._containers if one.pid]
        found = [made for one in live if root is not None and (made := _resident(one, root)) is not None]
        self._residents = self._residents.after(found, addresses.of_process(HOST))
        self._namespaces = tuple({Path(one.netns or f"/proc/{one.pid}/ns/net") for one in live})

    def _besides(self) -> Iterator[Collector]:
        """What sockets of the internet do not show."""
        for name, opened in (("unix sockets", unix_sockets.open_collector), ("wake-ups", wakeups.open_collector)):
            try:
                yield opened()
            except (Refused, OSError) as error:
                log.info("not seen here", what=name, reason=error)


def recorded(path: Path) -> Iterator[Window]:
    """The windows of a file that `numakin-enforcer record` wrote. BadRecording with the line's number."""
    with path.open() as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield Window.from_json(line)
            except BadRecording as bad:
                raise BadRecording(f"{path}, line {number}: {bad}") from bad


def _window(reading: Reading, attribution: Attribution, edges: Iterable[Edge]) -> Window:
    missed = reading.delta.missed
    return Window(
        seconds=reading.seconds,
        flows=tuple(flow for edge in edges if (flow := _flow(edge)) is not None),
        scale=reading.seconds / reading.seconds_on if reading.scaled and reading.seconds_on else 1.0,
        unattributed_bytes=sum(one.bytes for one in attribution.unattributed.values()),
        lost_bytes=missed.full_bytes + missed.other_bytes,
    )


def _flow(edge: Edge) -> Flow | None:
    """Between pods, or a pod and an address; what stays inside a pod is nobody's business here."""
    source, target = _end(edge.source, edge.port), _end(edge.target, edge.port)
    return Flow(source, target, edge.kind, edge.bytes, edge.messages, edge.by_server) if source != target else None


def _end(end: object, port: int) -> str:
    if isinstance(end, Local):
        return end.pod_uid
    address = end.address  # type: ignore[attr-defined]
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def _resident(one: local.LocalContainer, root: Path) -> LocalContainer | None:
    try:
        told = tuple(map(ip_address, one.ips)) or addresses.of_process(one.pid)
        return find_container(one.id, one.pod, one.pid, addresses=told, host_network=one.host_network, cgroup_root=root)
    except (ProcessLookupError, ValueError, OSError) as error:
        log.debug("a container can't be looked at", container=one.id[:12], error=error)
        return None


def opted_in_only(window: Window, opted_in: Mapping[str, bool]) -> tuple[Flow, ...]:
    """The flows of which at least one end is an opted-in pod of this node: all that ever leaves the node."""
    return tuple(one for one in window.flows if opted_in.get(one.source) or opted_in.get(one.target))
