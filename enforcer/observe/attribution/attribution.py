"""From counters by cgroup and address to edges between containers, pods and remote addresses. Pure.

A pair on one node is counted by both its ends, so one must be left out. The server's end is kept: it sees the client's
true address even behind a Service, where the client sees that of the Service. So

  - the server's end always makes edges, with the pod that has its peer's address;
  - the client's end makes edges only with peers that are not on this node, and with no Service's address (services.py);
  - what counts as a server's end with a peer elsewhere, on a port without a listener, is a client's: the role is
    only a convention where a connection is older than the probes (listening.py);
  - inside one network namespace client and server are joined by the port (loopback.py);
  - hostNetwork pods share the node's address, and are told apart by the port they serve or by whom they ask (peers.py).
"""

from collections.abc import Mapping
from dataclasses import replace

from enforcer.observe.attribution.containers import ContainerIndex, LocalContainer
from enforcer.observe.attribution.edges import Attribution, EdgeTally, Remote, Unattributed, kind, local
from enforcer.observe.attribution.listening import UNKNOWN, Listening
from enforcer.observe.attribution.loopback import Loopback
from enforcer.observe.attribution.peers import PeerLookup
from enforcer.observe.attribution.services import NONE, Services, Target, target, translated
from enforcer.observe.bpf.counters import CgroupPair, CounterKey, FlowKey, Volume, address

UNSPECIFIED = (bytes(16), bytes(10) + b"\xff\xff" + bytes(4))
"""The addresses :: and 0.0.0.0."""


def attribute(
    counters: Mapping[CounterKey, Volume],
    residents: ContainerIndex,
    listening: Listening = UNKNOWN,
    services: Services = NONE,
) -> Attribution:
    """Edges of one reading's differences, and what is left over. services: those recognised before."""
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
    peers, translations = PeerLookup(residents, known), translated(known, residents)
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
