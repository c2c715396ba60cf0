"""From counters by cgroup and address to edges between containers, pods and remote addresses. Pure.

A pair on one node is counted by both its ends, so one must be left out. The server's end is kept: it sees the client's
true address even behind a Service, where the client sees that of the Service. So

  - the server's end always makes edges, with the pod that has its peer's address;
  - the client's end makes edges only with peers that are not on this node, and with no Service's address (services.py);
  - what counts as a server's end with a peer elsewhere, on a port without a listener, is a client's: the role is
    only a convention where a connection is older than the probes (listening.py);
  - inside one network namespace, of a pod or of the host, every peer has the same address: client and server are
    joined by the port, and the client's end counts, as only it distinguishes clients;
  - hostNetwork pods share the node's address, and are told apart by the port they serve or by whom they ask.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from enforcer.observe.attribution.containers import ContainerIndex, LocalContainer, only_or_pod
from enforcer.observe.attribution.edges import (
    Attribution,
    EdgeTally,
    End,
    Kind,
    Local,
    Remote,
    Unattributed,
    kind,
    local,
)
from enforcer.observe.attribution.listening import UNKNOWN, Listening
from enforcer.observe.attribution.services import NONE, Services, Target, target, translated
from enforcer.observe.bpf.counters import CgroupPair, CounterKey, FlowKey, Volume, address

UNSPECIFIED = (bytes(16), bytes(10) + b"\xff\xff" + bytes(4))
"""The addresses :: and 0.0.0.0."""


HOST = ""
"""The namespace of all hostNetwork containers; any other is named by its pod's uid."""


def attribute(
    counters: Mapping[CounterKey, Volume],
    residents: ContainerIndex,
    listening: Listening = UNKNOWN,
    services: Services = NONE,
    scale: float = 1.0,
) -> Attribution:
    """Edges of one reading's differences, and what is left over. services: those recognised before. scale: what was
    counted has been multiplied by it, to stand for the time that the probes were off, too.
    """
    tally, loopback = EdgeTally(), Loopback()
    known: list[tuple[FlowKey, Volume, LocalContainer]] = []
    for key, volume in counters.items():
        container = residents.local_end(key) if isinstance(key, FlowKey) else None
        if isinstance(key, CgroupPair):
            _pair(key, volume, residents, tally)
        elif container is not None:
            known.append((key, volume, container))
        elif key.server or not residents.by_address(key.peer):
            # A host's client of a local pod is left out like any other client: the pod's end counts it.
            tally.leave(kind(key), Unattributed.NO_CONTAINER, volume)
    peers, translations = PeerLookup(residents, known), translated(known, residents, scale)
    requested: set[Target] = set()
    for flow, volume, container in known:
        if flow.peer in UNSPECIFIED:
            tally.leave(kind(flow), Unattributed.UNCONNECTED, volume)
        elif peers.share_namespace(flow.peer, container):
            loopback.add(flow, volume, container)
        elif flow.server and not (listening.is_client(flow, container) and peers.elsewhere(flow)):
            for end, share in peers.clients(flow, volume, container):
                tally.both(kind(flow), local(container), end, share, flow.port, by_server=True)
        elif target(flow) in translations or target(flow) in services:
            requested.add(target(flow))
        elif not peers.counted_by_server(flow):
            remote = Remote(address(flow.peer))
            tally.both(kind(flow), local(container), remote, volume, flow.port, by_server=False)
    loopback.join(tally)
    return replace(tally.result(), services=frozenset(requested))


def _pair(pair: CgroupPair, volume: Volume, residents: ContainerIndex, tally: EdgeTally) -> None:
    source = residents.by_cgroup(pair.source)
    target = residents.by_cgroup(pair.target) or residents.by_pid(pair.pid)
    if source is None or (target is None and pair.target):
        tally.leave(pair.kind, Unattributed.NO_CONTAINER, volume)
    elif target is None:
        tally.leave(pair.kind, Unattributed.PEER_GONE, volume)
    elif source.container_id != target.container_id:
        tally.sent(pair.kind, local(source), local(target), volume)


class PeerLookup:
    """Answers from the residents and from all flows of one reading, since one end often shows who the other is."""

    def __init__(self, residents: ContainerIndex, flows: Sequence[tuple[FlowKey, Volume, LocalContainer]]) -> None:
        self._residents = residents
        self._askers: dict[tuple[bytes, int, int], list[tuple[LocalContainer, int]]] = defaultdict(list)
        self._host_ports = set()
        for flow, volume, container in flows:
            if not flow.server:
                self._askers[flow.peer, flow.port, flow.protocol].append((container, volume.tx_bytes))
            elif container.host_network:
                self._host_ports.add((flow.port, flow.protocol))

    def share_namespace(self, peer: bytes, container: LocalContainer) -> bool:
        """Whether the peer is in the container's own network namespace."""
        return address(peer).is_loopback or peer in self._residents.addresses(container)

    def counted_by_server(self, flow: FlowKey) -> bool:
        """Whether the peer of a client's flow is here and counts the same traffic itself."""
        if flow.peer in self._residents.node_addresses:
            return (flow.port, flow.protocol) in self._host_ports
        return bool(self._residents.by_address(flow.peer))

    def elsewhere(self, flow: FlowKey) -> bool:
        """Whether the peer is on another node, and so counted there if at all."""
        return flow.peer not in self._residents.node_addresses and not self._residents.by_address(flow.peer)

    def clients(self, flow: FlowKey, volume: Volume, server: LocalContainer) -> Iterator[tuple[End, Volume]]:
        """The ends that a server's flow is with, each with its share of the volume."""
        pod = self._residents.by_address(flow.peer)
        asking = list(self._asking(flow, server))
        if pod:
            yield _one_of(pod, {container.container_id for container, _ in asking}), volume
            return
        # A hostNetwork pod is known by whom it asks; several share in proportion to what they sent there.
        from_host = [(container, sent) for container, sent in asking if container.host_network]
        total = sum(sent for _, sent in from_host)
        if flow.peer not in self._residents.node_addresses or not total:
            yield Remote(address(flow.peer)), volume
            return
        for container, sent in from_host:
            yield local(container), volume.scaled(sent / total)

    def _asking(self, flow: FlowKey, server: LocalContainer) -> Iterator[tuple[LocalContainer, int]]:
        """Containers that ask the server by its own address, with the bytes sent. Who asks a Service is not known."""
        for where in self._residents.addresses(server):
            yield from self._askers.get((where, flow.port, flow.protocol), ())


def _one_of(pod: Sequence[LocalContainer], asking: set[str]) -> Local:
    """The only container of a pod, or the only one that asks; else no more than the pod."""
    candidates = [container for container in pod if container.container_id in asking] or pod
    return local(only_or_pod(tuple(candidates)))


@dataclass(slots=True)
class Sides:
    """Both ends of all connections to one port."""

    servers: list[tuple[LocalContainer, Volume]] = field(default_factory=list)
    clients: list[tuple[LocalContainer, Volume]] = field(default_factory=list)


class Loopback:
    """Collects flows until all are known, then joins them."""

    def __init__(self) -> None:
        self._ports: dict[tuple[str, int, Kind], Sides] = defaultdict(Sides)

    def add(self, flow: FlowKey, volume: Volume, container: LocalContainer) -> None:
        namespace = HOST if container.host_network else container.pod_uid
        sides = self._ports[namespace, flow.port, kind(flow)]
        (sides.servers if flow.server else sides.clients).append((container, volume))

    def join(self, tally: EdgeTally) -> None:
        for (_, port, protocol), sides in self._ports.items():
            servers = {container.container_id: container for container, _ in sides.servers}
            if len(servers) != 1 or not sides.clients:
                # With clients, their count is the traffic; without any, the servers' is all there is.
                for _, volume in sides.clients or sides.servers:
                    tally.leave(protocol, Unattributed.LOOPBACK, volume)
                continue
            (server,) = servers.values()
            for client, volume in sides.clients:
                if client.container_id != server.container_id:
                    tally.both(protocol, local(client), local(server), volume, port, by_server=True)
