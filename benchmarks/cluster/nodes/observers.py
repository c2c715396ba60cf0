"""What the observers of both ends report of calls between pods, as `enforcer.observe` attributes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from numakin.wire import report_pb2 as pb

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


def reported_flows(reports: Iterable[Calls], homes: Mapping[str, str]) -> dict[str, list[pb.Flow]]:
    """Flows by node. homes: the node of each pod by uid; a pod that is not among them is not observed.

    On one node the server's end alone counts. Of two nodes both do: the server's sees the client's own address, the
    client's sees no more than that of the Service.
    """
    flows: dict[str, list[pb.Flow]] = {}
    for calls in reports:
        client, server = homes.get(calls.client), homes.get(calls.server)
        if server is not None:
            peer = calls.client if client == server else f"{calls.client_ip}:{PORT}"
            flows.setdefault(server, []).extend(_both(peer, calls.server, calls, by_server=True))
        if client is not None and client != server:
            peer = f"{calls.service_ip}:{PORT}"
            flows.setdefault(client, []).extend(_both(calls.client, peer, calls, by_server=False))
    return flows


def _both(client: str, server: str, calls: Calls, *, by_server: bool) -> Iterator[pb.Flow]:
    for source, target in ((client, server), (server, client)):
        yield pb.Flow(
            source=source, target=target, kind="tcp", bytes=calls.bytes // 2, messages=calls.count, by_server=by_server
        )
