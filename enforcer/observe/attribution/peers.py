"""Who is behind a peer's address?"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from enforcer.observe.attribution.containers import ContainerIndex, LocalContainer, only_or_pod
from enforcer.observe.attribution.edges import End, Local, Remote, local
from enforcer.observe.bpf.counters import FlowKey, Volume, address


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
