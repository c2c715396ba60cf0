from ipaddress import ip_address

import pytest

from enforcer.observe.bpf.counters import TCP, UDP, FlowKey, Volume, by_address, peer
from enforcer.observe.collectors import socket_tracepoints
from tests.enforcer.observe.observe_lab import flows

pytestmark = [pytest.mark.bpf, pytest.mark.usefixtures("way")]

REQUESTS, REQUEST, REPLY = 23, 101, 1009


@pytest.fixture
def collector(lab, allowed, way):
    made = allowed(socket_tracepoints.open_collector)
    yield made
    made.close()


@pytest.mark.parametrize("kind", ["tcp", "udp"])
@pytest.mark.parametrize(("client", "server"), [("10.87.0.1", "10.87.0.2"), ("fd87::1", "fd87::2")])
def test_both_ends_count_every_byte_and_call(lab, pods, collector, kind, client, server):
    """An unconnected server's peer is unknown to its socket, so only UDP clients have one."""
    lab.serve(kind, server, 5003, REQUEST, REPLY, **pods["server"])
    lab.ask(kind, server, 5003, REQUEST, REPLY, REQUESTS, **pods["client"])

    counted = flows(collector.drain(), pods)
    asked, answered = REQUESTS * REQUEST, REQUESTS * REPLY
    unspecified = "::" if ":" in client else "0.0.0.0"
    seen_by_server = client if kind == "tcp" else unspecified
    protocol = TCP if kind == "tcp" else UDP
    assert counted["client", server, 5003, False, protocol].tx_bytes == asked
    assert counted["client", server, 5003, False, protocol].rx_bytes == answered
    assert counted["client", server, 5003, False, protocol].tx_messages == REQUESTS
    assert counted["server", seen_by_server, 5003, True, protocol].rx_bytes == asked
    assert counted["server", seen_by_server, 5003, True, protocol] == Volume(answered, REQUESTS, asked, REQUESTS)
    assert len(counted) == 2


@pytest.mark.parametrize(("client", "server"), [("10.87.0.1", "10.87.0.2"), ("fd87::1", "fd87::2")])
def test_processes_in_the_root_cgroup_are_known_by_their_address(lab, pods, collector, client, server):
    lab.serve("tcp", server, 5003, REQUEST, REPLY, namespace=pods["server"]["namespace"])
    lab.ask("tcp", server, 5003, REQUEST, REPLY, REQUESTS, namespace=pods["client"]["namespace"])
    counted = collector.drain().counters
    own, other = peer(ip_address(client)), peer(ip_address(server))
    assert counted[FlowKey(by_address(own), other, 5003, False, TCP)].tx_bytes == REQUESTS * REQUEST
    assert counted[FlowKey(by_address(other), own, 5003, True, TCP)].rx_bytes == REQUESTS * REQUEST


def test_a_v4_client_of_a_v6_socket_is_the_v4_peer(lab, pods, collector):
    lab.serve("tcp", "::", 5003, REQUEST, REPLY, **pods["server"])
    lab.ask("tcp", "10.87.0.2", 5003, REQUEST, REPLY, REQUESTS, **pods["client"])
    assert ("server", "10.87.0.1", 5003, True, TCP) in flows(collector.drain(), pods)


def test_looking_at_a_message_without_taking_it_is_not_receiving(lab, pods, collector):
    lab.serve("tcp", "10.87.0.2", 5003, REQUEST, REPLY, **pods["server"])
    lab.ask("tcp", "10.87.0.2", 5003, REQUEST, REPLY, REQUESTS, "--peek", **pods["client"])
    assert flows(collector.drain(), pods)["client", "10.87.0.2", 5003, False, TCP].rx_bytes == REQUESTS * REPLY
