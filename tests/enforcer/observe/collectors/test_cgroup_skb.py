import json
import os
import subprocess
from ipaddress import ip_address
from pathlib import Path

import pytest

from enforcer.observe.bpf import contract
from enforcer.observe.bpf.counters import TCP, UDP, FlowKey, Missed, Volume, by_address, peer
from enforcer.observe.collectors import cgroup_skb
from tests.enforcer.observe.observe_lab import cgroup_root, flows, run

pytestmark = [pytest.mark.bpf, pytest.mark.usefixtures("way")]

REQUESTS, REQUEST, REPLY = 23, 101, 1009
ASKED, ANSWERED = REQUESTS * REQUEST, REQUESTS * REPLY
EXCHANGE = (REQUEST, REPLY, REQUESTS)

PORTMAP = Path("/usr/lib/cni/portmap")


@pytest.fixture
def collector(lab, way):
    made = cgroup_skb.open_collector(lab.root.path)
    made.attach()
    yield made
    made.close()


@pytest.mark.parametrize("kind", ["tcp", "udp", "sendto"])
@pytest.mark.parametrize(("client", "server"), [("10.87.0.1", "10.87.0.2"), ("fd87::1", "fd87::2")])
def test_both_ends_count_every_byte_and_message_in_both_directions(lab, pods, collector, kind, client, server):
    lab.serve("udp" if kind == "sendto" else kind, server, 5003, REQUEST, REPLY, **pods["server"])
    lab.ask(kind, server, 5003, *EXCHANGE, **pods["client"])
    protocol = TCP if kind == "tcp" else UDP
    assert flows(collector.drain(), pods) == {
        ("client", server, 5003, False, protocol): Volume(ASKED, REQUESTS, ANSWERED, REQUESTS),
        ("server", client, 5003, True, protocol): Volume(ANSWERED, REQUESTS, ASKED, REQUESTS),
    }


def test_bulk_is_counted_whole_and_in_few_messages(lab, pods, collector):
    """Resent segments count again, on both ends: more of them on a busy machine."""
    size = 20_000_003
    lab.serve("tcp", "10.87.0.2", 5003, size, 1, **pods["server"])
    lab.ask("tcp", "10.87.0.2", 5003, size, 1, 1, **pods["client"])
    sent = flows(collector.drain(), pods)["client", "10.87.0.2", 5003, False, TCP]
    assert size <= sent.tx_bytes < 1.25 * size
    assert sent.tx_messages < size // 1448, "one for each handed-over packet, not for each segment"


@pytest.mark.parametrize(("client", "server"), [("10.87.0.1", "10.87.0.2"), ("fd87::1", "fd87::2")])
def test_datagrams_cut_into_fragments_are_counted_whole(lab, pods, collector, client, server):
    lab.serve("udp", server, 5003, 9001, 8009, **pods["server"])
    lab.ask("udp", server, 5003, 9001, 8009, REQUESTS, **pods["client"])
    whole = REQUESTS * 9001, REQUESTS, REQUESTS * 8009, REQUESTS
    assert flows(collector.drain(), pods)["client", server, 5003, False, UDP] == Volume(*whole)
    assert collector.drain().missed == Missed()


def test_extension_headers_are_stepped_over(lab, pods, collector):
    """Hop-by-hop and destination options of 8 bytes each stand between the IPv6 header and UDP."""
    lab.serve("udp", "fd87::2", 5003, REQUEST, REPLY, **pods["server"])
    lab.ask("udp", "fd87::2", 5003, *EXCHANGE, "--extensions", **pods["client"])
    assert flows(collector.drain(), pods)["client", "fd87::2", 5003, False, UDP].tx_bytes == ASKED


def test_short_connections_are_all_there(lab, pods, collector):
    lab.serve("tcp", "10.87.0.2", 5003, REQUEST, REPLY, **pods["server"])
    lab.ask("tcp", "10.87.0.2", 5003, REQUEST, REPLY, 1, "-n", 211, **pods["client"])
    assert flows(collector.drain(), pods) == {
        ("client", "10.87.0.2", 5003, False, TCP): Volume(211 * REQUEST, 211, 211 * REPLY, 211),
        ("server", "10.87.0.1", 5003, True, TCP): Volume(211 * REPLY, 211, 211 * REQUEST, 211),
    }


def test_a_server_above_the_ephemeral_floor_is_known_by_its_connections_beginning(lab, pods, collector):
    lab.serve("tcp", "10.87.0.2", 60101, REQUEST, REPLY, **pods["server"])
    lab.ask("tcp", "10.87.0.2", 60101, REQUEST, REPLY, 1, "-n", 23, **pods["client"])
    assert {flow[:4] for flow in flows(collector.drain(), pods)} == {
        ("client", "10.87.0.2", 60101, False),
        ("server", "10.87.0.1", 60101, True),
    }


def test_equal_ports_at_both_ends_still_give_one_server(lab, pods, collector):
    """The lower address serves."""
    lab.serve("udp", "10.87.0.2", 123, REQUEST, REPLY, **pods["server"])
    lab.ask("udp", "10.87.0.2", 123, *EXCHANGE, "--bind", "10.87.0.1:123", **pods["client"])
    assert {flow[:4] for flow in flows(collector.drain(), pods)} == {
        ("client", "10.87.0.2", 123, True),
        ("server", "10.87.0.1", 123, False),
    }


@pytest.fixture
def node(lab, pods):
    """A node's namespace between the two pods, with an address in the network of each."""
    made = lab.namespace()
    for name, subnet in (("client", 1), ("server", 2)):
        lab.veth(pods[name]["namespace"], made, [f"10.88.{subnet}.2/24"], [f"10.88.{subnet}.1/24"])
        run("ip", "-n", pods[name]["namespace"], "route", "add", "default", "via", f"10.88.{subnet}.1")
    run("ip", "netns", "exec", made, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    return made


def test_behind_address_translation_the_server_sees_the_true_client(lab, pods, collector, node):
    """A Service's address translated to the server's as kube-proxy does."""
    translate = "-t nat -A PREROUTING -d 10.96.0.7 -p tcp --dport 80 -j DNAT --to-destination 10.88.2.2:5003"
    run("ip", "netns", "exec", node, "iptables", *translate.split())

    lab.serve("tcp", "10.88.2.2", 5003, REQUEST, REPLY, **pods["server"])
    lab.ask("tcp", "10.96.0.7", 80, *EXCHANGE, **pods["client"])
    assert flows(collector.drain(), pods) == {
        ("client", "10.96.0.7", 80, False, TCP): Volume(ASKED, REQUESTS, ANSWERED, REQUESTS),
        ("server", "10.88.1.2", 5003, True, TCP): Volume(ANSWERED, REQUESTS, ASKED, REQUESTS),
    }


def test_behind_a_port_of_the_node_the_server_sees_the_true_client(lab, pods, collector, node):
    """A hostPort, which CNI's own plugin translates as it is called by a container runtime."""
    map_port(node, Path("/run/netns", pods["server"]["namespace"]), "10.88.2.2/24", 8080, 5003)
    lab.serve("tcp", "10.88.2.2", 5003, REQUEST, REPLY, **pods["server"])
    lab.ask("tcp", "10.88.1.1", 8080, *EXCHANGE, **pods["client"])
    assert flows(collector.drain(), pods) == {
        ("client", "10.88.1.1", 8080, False, TCP): Volume(ASKED, REQUESTS, ANSWERED, REQUESTS),
        ("server", "10.88.1.2", 5003, True, TCP): Volume(ANSWERED, REQUESTS, ASKED, REQUESTS),
    }


def map_port(node, pod, address, outside, inside):
    """As the last of a network's plugins, once the one before it has given the pod this address."""
    if not PORTMAP.exists():
        pytest.skip("needs apt-get install containernetworking-plugins")
    given = {
        "cniVersion": "0.4.0",
        "interfaces": [{"name": "eth0", "sandbox": str(pod)}],
        "ips": [{"version": "4", "address": address, "interface": 0}],
    }
    mapping = {"hostPort": outside, "containerPort": inside, "protocol": "tcp"}
    config = {"cniVersion": "0.4.0", "name": "pods", "type": "portmap", "prevResult": given}
    config |= {"runtimeConfig": {"portMappings": [mapping]}}
    environment = {"CNI_COMMAND": "ADD", "CNI_CONTAINERID": "server", "CNI_NETNS": str(pod), "CNI_IFNAME": "eth0"}
    done = subprocess.run(
        ["ip", "netns", "exec", node, PORTMAP],
        input=json.dumps(config),
        env={**os.environ, **environment, "CNI_PATH": str(PORTMAP.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_on_loopback_client_and_server_are_told_apart_by_cgroup(lab, pods, collector):
    inside = pods["server"]["namespace"]
    lab.serve("tcp", "127.0.0.1", 5003, REQUEST, REPLY, **pods["server"])
    lab.ask("tcp", "127.0.0.1", 5003, *EXCHANGE, cgroup=pods["client"]["cgroup"], namespace=inside)
    assert flows(collector.drain(), pods) == {
        ("client", "127.0.0.1", 5003, False, TCP): Volume(ASKED, REQUESTS, ANSWERED, REQUESTS),
        ("server", "127.0.0.1", 5003, True, TCP): Volume(ANSWERED, REQUESTS, ASKED, REQUESTS),
    }


@pytest.mark.parametrize(("client", "server"), [("10.87.0.1", "10.87.0.2"), ("fd87::1", "fd87::2")])
def test_processes_in_the_root_cgroup_are_known_by_their_address(lab, pods, client, server):
    collector = cgroup_skb.open_collector(cgroup_root())
    collector.attach()
    lab.serve("tcp", server, 5003, REQUEST, REPLY, namespace=pods["server"]["namespace"])
    lab.ask("tcp", server, 5003, *EXCHANGE, namespace=pods["client"]["namespace"])
    counted = collector.drain().counters
    collector.close()
    own, other = peer(ip_address(client)), peer(ip_address(server))
    assert counted[FlowKey(by_address(own), other, 5003, False, TCP)].tx_bytes == ASKED
    assert counted[FlowKey(by_address(other), own, 5003, True, TCP)].rx_bytes == ASKED


def test_of_two_hundred_peers_in_a_map_for_64_every_byte_is_recorded_or_counted_as_lost(lab, pods):
    collector = cgroup_skb.open_collector(lab.root.path, edges=64)
    collector.attach()
    inside = {"cgroup": pods["client"]["cgroup"], "namespace": pods["server"]["namespace"]}
    lab.serve("tcp", "127.0.0.1", 5003, REQUEST, REPLY, **pods["server"])
    lab.ask("tcp", "127.0.0.1", 5003, *EXCHANGE, "-n", 200, "--sources", "127.0.1.", **inside)
    snapshot = collector.drain()
    collector.close()

    recorded = sum((volume for volume in snapshot.counters.values()), Volume())
    assert len(snapshot.counters) == 64
    assert snapshot.missed.full_bytes > 0
    total = recorded.tx_bytes + recorded.rx_bytes + snapshot.missed.full_bytes
    assert total == 200 * 2 * (ASKED + ANSWERED), "each byte was sent once and received once"
    messages = recorded.tx_messages + recorded.rx_messages + snapshot.missed.full_messages
    assert messages == 200 * 2 * 2 * REQUESTS


def test_a_flow_that_changes_its_cpu_is_counted_once_and_whole(lab, pods, collector):
    allowed = os.sched_getaffinity(0)
    lab.serve("tcp", "10.87.0.2", 5003, REQUEST, REPLY, **pods["server"])
    try:
        for cpu in allowed:
            os.sched_setaffinity(0, {cpu})
            lab.ask("tcp", "10.87.0.2", 5003, *EXCHANGE, **pods["client"])
    finally:
        os.sched_setaffinity(0, allowed)
    times = len(allowed)
    assert flows(collector.drain(), pods)["client", "10.87.0.2", 5003, False, TCP] == Volume(
        times * ASKED, times * REQUESTS, times * ANSWERED, times * REQUESTS
    )


def test_of_more_flows_than_a_cpu_has_slots_each_is_counted_whole(lab, pods, collector):
    clients = contract.SLOTS_OF_CPU * 3 // 2
    inside = {"cgroup": pods["client"]["cgroup"], "namespace": pods["server"]["namespace"]}
    lab.serve("tcp", "127.0.0.1", 5003, REQUEST, REPLY, **pods["server"])
    lab.ask("tcp", "127.0.0.1", 5003, *EXCHANGE, "-n", clients, "--sources", "127.0.1.", **inside)
    counted = flows(collector.drain(), pods)
    served = [volume for (name, *_), volume in counted.items() if name == "server"]
    assert served == [Volume(ANSWERED, REQUESTS, ASKED, REQUESTS)] * clients
    assert counted["client", "127.0.0.1", 5003, False, TCP].tx_bytes == clients * ASKED


def test_while_detached_nothing_is_counted_and_what_was_stays(lab, pods, collector):
    lab.serve("tcp", "10.87.0.2", 5003, REQUEST, REPLY, **pods["server"])
    lab.ask("tcp", "10.87.0.2", 5003, *EXCHANGE, **pods["client"])
    collector.detach()
    before = collector.drain()
    lab.ask("tcp", "10.87.0.2", 5003, *EXCHANGE, **pods["client"])
    assert collector.drain() == before
    collector.attach()
    lab.ask("tcp", "10.87.0.2", 5003, *EXCHANGE, **pods["client"])
    assert flows(collector.drain(), pods)["client", "10.87.0.2", 5003, False, TCP].tx_bytes == 2 * ASKED


def test_an_idle_flow_leaves_the_map_and_says_so(lab, pods, collector):
    lab.serve("tcp", "10.87.0.2", 5003, REQUEST, REPLY, **pods["server"])
    lab.ask("tcp", "10.87.0.2", 5003, *EXCHANGE, **pods["client"])
    first = collector.drain()
    last = next(snapshot for snapshot in iter(collector.drain, None) if snapshot.forgotten)
    assert last.forgotten == set(first.counters)
    assert collector.drain().counters == {}
    lab.ask("tcp", "10.87.0.2", 5003, *EXCHANGE, **pods["client"])
    assert collector.drain().counters == first.counters
