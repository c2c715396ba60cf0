"""From counters by cgroup and address to edges between containers, pods and remote addresses. Pure.

A pair on one node is counted by both its ends, so one must be left out. The server's end is kept: it sees the client's
true address even behind a Service, where the client sees that of the Service. So

  - the server's end always makes edges, with whoever has its peer's address;
  - the client's end makes edges only with peers that are not on this node;
  - inside one network namespace client and server are joined by the port (loopback.py);
  - hostNetwork pods share the node's address, and are told apart by the port they serve or by whom they ask (peers.py).
"""

from collections.abc import Mapping

from enforcer.observe.counters import Flow, Key, Pair, Volume, address
from enforcer.observe.edges import Attribution, Remote, Unattributed, kind, local
from enforcer.observe.loopback import Loopback
from enforcer.observe.peers import Peers
from enforcer.observe.residents import LocalContainer, Residents
from enforcer.observe.tally import Tally

UNSPECIFIED = (bytes(16), bytes(10) + b"\xff\xff" + bytes(4))
"""The addresses :: and 0.0.0.0."""


def attribute(counters: Mapping[Key, Volume], residents: Residents) -> Attribution:
    """Edges of one reading's differences, and what is left over."""
    tally, loopback = Tally(), Loopback()
    known: list[tuple[Flow, Volume, LocalContainer]] = []
    for key, volume in counters.items():
        container = residents.by_cgroup(key.cgroup) if isinstance(key, Flow) else None
        if isinstance(key, Pair):
            _pair(key, volume, residents, tally)
        elif container is not None:
            known.append((key, volume, container))
        elif key.server or not residents.by_address(key.peer):
            # A host's client of a local pod is left out like any other client: the pod's end counts it.
            tally.leave(kind(key), Unattributed.NO_CONTAINER, volume)
    peers = Peers(residents, known)
    for flow, volume, container in known:
        if flow.peer in UNSPECIFIED:
            tally.leave(kind(flow), Unattributed.UNCONNECTED, volume)
        elif peers.share_namespace(flow.peer, container):
            loopback.add(flow, volume, container)
        elif flow.server:
            for end, share in peers.clients(flow, volume, container):
                tally.both(kind(flow), local(container), end, share, flow.port, by_server=True)
        elif not peers.counted_by_server(flow):
            remote = Remote(address(flow.peer))
            tally.both(kind(flow), local(container), remote, volume, flow.port, by_server=False)
    loopback.join(tally)
    return tally.result()


def _pair(pair: Pair, volume: Volume, residents: Residents, tally: Tally) -> None:
    source = residents.by_cgroup(pair.source)
    target = residents.by_cgroup(pair.target) or residents.by_pid(pair.pid)
    if source is None or (target is None and pair.target):
        tally.leave(pair.kind, Unattributed.NO_CONTAINER, volume)
    elif target is None:
        tally.leave(pair.kind, Unattributed.PEER_GONE, volume)
    elif source.container_id != target.container_id:
        tally.sent(pair.kind, local(source), local(target), volume)
