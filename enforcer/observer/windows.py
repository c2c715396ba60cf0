"""Where windows of traffic come from: the collectors, attributed to pods, or a recorded file."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from enforcer.machine.mounts import CgroupMounts, mounted
from enforcer.observe.attribution import addresses, shared_memory
from enforcer.observe.attribution.attribution import attribute
from enforcer.observe.attribution.containers import Address, ContainerIndex, LocalContainer
from enforcer.observe.attribution.edges import Attribution, Edge, Local
from enforcer.observe.attribution.listening import UNKNOWN, Listening, ListeningPoll
from enforcer.observe.attribution.processes import HOST, TakenOver, find_container
from enforcer.observe.attribution.services import NONE, Services, Target
from enforcer.observe.attribution.unseen import unseen
from enforcer.observe.bpf.counters import address as counted_address
from enforcer.observe.bpf.flow_map import ListeningMap
from enforcer.observe.bpf.loader import LoadRefused
from enforcer.observe.collectors import unix_sockets, wakeups
from enforcer.observe.collectors.chain import NO_CGROUP_V2, CollectorRefusal, Sources, choose
from enforcer.observe.collectors.collector import Collector
from enforcer.observe.collectors.duty import DutyCycle
from enforcer.observe.collectors.probes import Probes
from enforcer.observe.collectors.watch import CollectorPair, Reading
from numakin.placement.traffic.graph import Flow
from numakin.placement.traffic.window import BadRecording, Window
from numakin.process.log import Log
from numakin.wire import local_pb2 as local

log = Log("observer.traffic")

SHARED_MEMORY_EVERY = 6
"""Windows between two scans of shared mappings, which change rarely: a minute at the default window."""


@dataclass(slots=True)
class LiveWindows:
    """The kernel's traffic. Call `step` when it asks to be called, `window` at the end of each window.

    clock: read once, when the programs are loaded, which takes seconds on a busy machine: windows begin then.
    """

    duty: DutyCycle
    clock: Callable[[], float]
    collector: str = ""
    programs: str = ""
    """How its BPF programs were loaded; empty without any."""
    refusals: tuple[CollectorRefusal, ...] = ()
    unseen: Mapping[str, int] = field(default_factory=dict)
    """Containers whose traffic can't be distinguished from others', by the reason."""
    _sources: Sources = field(init=False)
    _watch: CollectorPair = field(init=False)
    _residents: ContainerIndex = field(default_factory=ContainerIndex)
    _poll: ListeningPoll = field(default_factory=ListeningPoll)
    _listening: Listening = UNKNOWN
    _services: Services = NONE
    _ports: ListeningMap | None = None
    _namespaces: tuple[Path, ...] = ()
    _windows: int = 0
    _containers: tuple[local.LocalContainer, ...] = ()

    def __post_init__(self) -> None:
        self._open(shared_cgroups=False)

    def _open(self, *, shared_cgroups: bool) -> None:
        self._sources = Sources.here(lambda: self._namespaces, shared_cgroups=shared_cgroups)
        choice = choose(self._sources)
        self.collector, self.refusals = choice.collector.name, choice.refusals
        loaded = choice.collector.loaded if isinstance(choice.collector, Probes) else None
        self.programs = loaded.how if loaded is not None else ""
        self._ports = ListeningMap(loaded) if loaded is not None else None
        for refusal in choice.refusals:
            log.info("a better way to see traffic is refused here", way=refusal.name, reason=refusal.reason)
        collectors = [choice.collector, *self._besides()]
        log.info(
            "traffic is observed",
            by=", ".join(collector.name for collector in collectors),
            programs=self.programs or "none",
            share_of_time=self.duty.share,
        )
        self._watch = CollectorPair(collectors, self.duty, self.clock())

    def received(self, containers: Iterable[local.LocalContainer]) -> None:
        """The node's containers as they are now; their processes and cgroups are read again in each window."""
        self._containers = tuple(containers)
        self._refresh(again=False)

    def step(self, now: float) -> float:
        return self._watch.step(now)

    def window(self, now: float) -> Window:
        reading = self._watch.read(now)
        self._refresh(again=True)
        counters = reading.delta.counters
        attribution = attribute(counters, self._residents, self._listening, self._services, reading.scale)
        recognised = tuple(_named(service) for service in attribution.services if service not in self._services)
        self._services = self._services.after(attribution.services)
        edges = list(attribution.edges)
        if self._windows % SHARED_MEMORY_EVERY == 0:
            edges += shared_memory.scan(self._residents.current)
        self._windows += 1
        self._residents = self._residents.aged()
        return _window(reading, attribution, edges, recognised)

    def close(self) -> None:
        self._watch.close()

    def _refresh(self, *, again: bool) -> None:
        mounts = mounted()
        live = [container for container in self._containers if container.pid]
        residents = [made for container in live if (made := _resident(container, mounts)) is not None]
        self._residents = self._residents.after(residents, addresses.of_process(HOST))
        self._namespaces = tuple(Path(f"/proc/{container.pid}/ns/net") for container in live)
        if self._residents.shared_cgroups and not self._sources.shared_cgroups:
            log.warning("pods share a cgroup v2, which can't distinguish their packets: another collector is chosen")
            self._watch.close()
            self._open(shared_cgroups=True)
        self._listening = self._poll.poll(self._residents.current, again=again)
        if self._ports is not None:
            self._ports.write(self._listening.everywhere())
        blind = unseen(self._residents, self.collector, self._sources.identity)
        for reason in blind.keys() - self.unseen.keys():
            log.warning(
                "traffic of some containers can't be told from others'", containers=blind[reason], reason=reason
            )
        self.unseen = blind

    def _besides(self) -> Iterator[Collector]:
        """What sockets of the internet do not show. Both go by cgroup v2."""
        if self._sources.cgroup is None:
            log.info("not seen here", what="unix sockets and wake-ups", reason=NO_CGROUP_V2)
            return
        for name, opened in (("unix sockets", unix_sockets.open_collector), ("wake-ups", wakeups.open_collector)):
            try:
                yield opened()
            except (LoadRefused, OSError) as error:
                log.info("not seen here", what=name, reason=error)


def recorded(path: Path) -> Iterator[Window]:
    """The windows of a file that `numakin-enforcer record` wrote. BadRecording, with the line's number where there is
    one.
    """
    try:
        with path.open() as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    yield Window.from_json(line)
                except BadRecording as bad:
                    raise BadRecording(f"{path}, line {number}: {bad}") from bad
    except (OSError, UnicodeDecodeError) as bad:
        raise BadRecording(f"{path}: {bad}") from bad


def _window(reading: Reading, attribution: Attribution, edges: Iterable[Edge], services: tuple[str, ...]) -> Window:
    missed = reading.delta.missed
    return Window(
        seconds=reading.seconds,
        flows=tuple(flow for edge in edges if (flow := _flow(edge)) is not None),
        scale=reading.scale,
        unattributed_bytes=int(sum(amount.bytes for amount in attribution.unattributed.values())),
        lost_bytes=missed.full_bytes + missed.other_bytes,
        services=services,
    )


def _flow(edge: Edge) -> Flow | None:
    """A flow between pods, or a pod and an address; None for what stays inside a pod."""
    source, target = _end(edge.source, edge.port), _end(edge.target, edge.port)
    return Flow(source, target, edge.kind, edge.bytes, edge.messages, edge.by_server) if source != target else None


def _end(end: object, port: int) -> str:
    if isinstance(end, Local):
        return end.pod_uid
    return _at(end.address, port)  # type: ignore[attr-defined]


def _at(address: Address, port: int) -> str:
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def _named(service: Target) -> str:
    return _at(counted_address(service.peer), service.port)


def _resident(container: local.LocalContainer, mounts: CgroupMounts) -> LocalContainer | None:
    """None where nothing of it can be read; by its pod's addresses alone where its process is not its own."""
    try:
        ips = tuple(map(ip_address, container.ips))
        try:
            return find_container(
                container.id,
                container.pod,
                container.pid,
                cgroups_path=container.cgroups_path,
                addresses=ips or addresses.of_process(container.pid),
                host_network=container.host_network if container.HasField("host_network") else None,
                mounts=mounts,
            )
        except TakenOver:
            known = LocalContainer(container.id, container.pod, frozenset(), ips, container.host_network)
            return known if ips else None
    except (ProcessLookupError, ValueError, OSError) as error:
        log.debug("a container can't be read", container=container.id[:12], error=error)
        return None


def opted_in_only(window: Window, opted_in: Container[str]) -> tuple[Flow, ...]:
    """The flows of which at least one end is an opted-in pod of this node: all that ever leaves the node. opted_in:
    the uids of those that are here, or were here lately.
    """
    return tuple(flow for flow in window.flows if flow.source in opted_in or flow.target in opted_in)
