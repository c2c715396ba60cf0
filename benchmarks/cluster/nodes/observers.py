"""What the observers of both ends tell of calls between pods, as `enforcer.observe` attributes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from proto import report_pb2 as pb

PORT = 8080


@dataclass(frozen=True, slots=True)
class Calls:
    """A client's calls of a server in some time: uids and addresses of both. service_ip: what the client dials.

    bytes: of requests and answers together; count: of calls, each a message either way.
    """

    client: str
    client_ip: str
    server: str
    service_ip: str
    bytes: int
    count: int


def told(said: Iterable[Calls], homes: Mapping[str, str]) -> dict[str, list[pb.Flow]]:
    """Flows by node. homes: the node of each pod by uid; a pod that is not among them is not observed.

    On one node the server's end alone counts. Of two nodes both do: the server's sees the client's own address, the
    client's sees no more than that of the Service.
    """
    flows: dict[str, list[pb.Flow]] = {}
    for one in said:
        client, server = homes.get(one.client), homes.get(one.server)
        if server is not None:
            peer = one.client if client == server else f"{one.client_ip}:{PORT}"
            flows.setdefault(server, []).extend(_both(peer, one.server, one, by_server=True))
        if client is not None and client != server:
            peer = f"{one.service_ip}:{PORT}"
            flows.setdefault(client, []).extend(_both(one.client, peer, one, by_server=False))
    return flows


def _both(client: str, server: str, one: Calls, *, by_server: bool) -> Iterator[pb.Flow]:
    for source, target in ((client, server), (server, client)):
        yield pb.Flow(
            source=source, target=target, kind="tcp", bytes=one.bytes // 2, messages=one.count, by_server=by_server
        )
