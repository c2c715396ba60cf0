"""Which addresses are Services': what the node translates to pods (DNAT). Pure.

Behind a Service the client's end names the Service, and the server's end the client: one exchange, two flows. The
server's is the true pair. A Service is recognised where a local server shows a client that asks it at no address of
its own, and just one of the addresses that this client does ask exchanges as much with it, or more in the same
proportion, should other servers stand behind it too. Once recognised it stays one for a while: what any client
exchanges with it is shown by servers' ends, here or on their nodes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from enforcer.observe.attribution.containers import ContainerIndex, LocalContainer
from enforcer.observe.bpf.counters import FlowKey, Volume

TOLERANCE = 0.1
"""By which two ends' counts of one exchange may differ: the probes come on in the middle of it."""

LEAST_SHARE = 0.05
"""Of what a client exchanges with a Service that a server must stand for, to say that it stands behind it."""

LEAST_MESSAGES = 8
"""Counted by the probes; fewer are the same by chance."""

READINGS = 360
"""Readings for which a Service is remembered: an hour at one every ten seconds."""

MOST_SERVICES = 4096
"""Remembered at once; over that the oldest go."""


class Target(NamedTuple):
    """Whom a client asks."""

    peer: bytes
    port: int
    protocol: int


Known = Sequence[tuple[FlowKey, Volume, LocalContainer]]


@dataclass(frozen=True, slots=True)
class Services:
    """Those that were recognised, with the readings since. Go on with `after`."""

    age: Mapping[Target, int] = field(default_factory=dict)

    def __contains__(self, target: object) -> bool:
        return target in self.age

    def after(self, seen: Iterable[Target]) -> "Services":
        """seen: those recognised or asked in a reading."""
        fresh = dict.fromkeys(seen, 0)
        old = {target: age + 1 for target, age in self.age.items() if target not in fresh and age < READINGS}
        return Services(dict(list({**fresh, **old}.items())[:MOST_SERVICES]))


NONE = Services()


def target(flow: FlowKey) -> Target:
    return Target(flow.peer, flow.port, flow.protocol)


def translated(known: Known, residents: ContainerIndex, scale: float = 1.0) -> set[Target]:
    """The addresses that one reading shows to be Services'. scale: as of `attribute`."""
    requested: dict[str, dict[Target, Volume]] = defaultdict(lambda: defaultdict(Volume))
    for flow, volume, container in known:
        if not flow.server and not container.host_network:
            requested[container.pod_uid][target(flow)] += volume
    services: set[Target] = set()
    for client, protocol, volume in _unasked(known, residents, requested):
        if round((volume.tx_messages + volume.rx_messages) / scale) < LEAST_MESSAGES:
            continue
        fitting = [
            service
            for service, sent in requested[client].items()
            if service.protocol == protocol and not residents.by_address(service.peer) and _fits(volume, sent)
        ]
        if len(fitting) == 1:
            services.update(fitting)
    return services


def _unasked(
    known: Known, residents: ContainerIndex, requested: Mapping[str, Mapping[Target, Volume]]
) -> Iterator[tuple[str, int, Volume]]:
    """(client's pod, protocol, volume) of what servers here exchange with clients here that did not ask them by an
    address of theirs: of each server, and of all with the same port together, as those behind one Service.
    """
    together: dict[tuple[str, int, int], Volume] = defaultdict(Volume)
    servers: Counter[tuple[str, int, int]] = Counter()
    for flow, volume, server in known:
        clients = residents.by_address(flow.peer) if flow.server else ()
        if not clients or clients[0].pod_uid == server.pod_uid or clients[0].pod_uid not in requested:
            continue
        client = clients[0].pod_uid
        own = (Target(address, flow.port, flow.protocol) for address in residents.addresses(server))
        if not any(address in requested[client] for address in own):
            yield client, flow.protocol, volume
            together[client, flow.port, flow.protocol] += volume
            servers[client, flow.port, flow.protocol] += 1
    for (client, port, protocol), volume in together.items():
        if servers[client, port, protocol] > 1:
            yield client, protocol, volume


def _fits(served: Volume, requested: Volume) -> bool:
    """Whether a server's part in what a client exchanges with one address may be `served`."""
    ways = [(served.rx_bytes, requested.tx_bytes), (served.tx_bytes, requested.rx_bytes)]
    shares = [here / there if there else float("inf") for here, there in ways if here or there]
    least, most = min(shares), max(shares)
    if len(shares) == 1:
        return 1 - TOLERANCE <= least <= 1 + TOLERANCE
    return least >= LEAST_SHARE and most <= 1 + TOLERANCE and most - least <= TOLERANCE * most
