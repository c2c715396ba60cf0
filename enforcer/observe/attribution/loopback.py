"""Traffic inside one network namespace: between containers of a pod, or of the host's network.

Every peer has the same address there, so client and server are joined by the port. The client's end is the one that
counts, as only it distinguishes clients.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from enforcer.observe.attribution.containers import LocalContainer
from enforcer.observe.attribution.edges import EdgeTally, Kind, Unattributed, kind, local
from enforcer.observe.bpf.counters import FlowKey, Volume

HOST = ""
"""The namespace of all hostNetwork containers; any other is named by its pod's uid."""


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
