"""Connections that are older than the probes, through a Service, to servers above the ephemeral floor: no SYN is seen,
and the ports alone do not say who serves.
"""

import os
import socket
import sys
from ipaddress import ip_address

import pytest

from enforcer.observe.attribution.attribution import attribute
from enforcer.observe.attribution.containers import ContainerIndex, LocalContainer
from enforcer.observe.attribution.edges import Local, Remote
from enforcer.observe.attribution.listening import HOST, YOUNG, Listening, ListeningPoll, listened
from enforcer.observe.bpf.contract import EPHEMERAL_FLOOR
from enforcer.observe.bpf.counters import TCP, FlowKey, Volume, peer
from enforcer.observe.collectors.duty import DutyCycle
from enforcer.observer.windows import LiveWindows
from numakin.wire import local_pb2 as local
from tests.enforcer.observe.observe_lab import run

SERVICE, SERVER = "10.96.0.7", "10.88.2.2"
REQUESTS, REQUEST, REPLY = 23, 101, 1009

ASKER = """
import socket, sys
made = socket.create_connection((sys.argv[1], int(sys.argv[2])), source_address=("", int(sys.argv[3])))
print("done", flush=True)
for _ in sys.stdin:
    for _ in range(int(sys.argv[4])):
        made.sendall(b"q" * int(sys.argv[5]))
        left = int(sys.argv[6])
        while left:
            left -= len(made.recv(left))
    print("done", flush=True)
"""


class Cluster:
    """A node that translates SERVICE to SERVER, and pods behind it."""

    def __init__(self, lab):
        self.lab, self.node = lab, lab.namespace()
        run("ip", "netns", "exec", self.node, "sysctl", "-qw", "net.ipv4.ip_forward=1")

    def pod(self, name, network):
        namespace = self.lab.namespace()
        self.lab.veth(self.node, namespace, [f"10.88.{network}.1/24"], [f"10.88.{network}.2/24"])
        run("ip", "-n", namespace, "route", "add", "default", "via", f"10.88.{network}.1")
        return {"cgroup": self.lab.cgroup(name), "namespace": namespace}

    def serve(self, port, target):
        rule = [
            "-d",
            SERVICE,
            "-p",
            "tcp",
            "--dport",
            str(port),
            "-j",
            "DNAT",
            "--to-destination",
            f"{SERVER}:{target}",
        ]
        run("ip", "netns", "exec", self.node, "iptables", "-t", "nat", "-A", "PREROUTING", *rule)

    def connect(self, port, source, pod):
        arguments = map(str, (SERVICE, port, source, REQUESTS, REQUEST, REPLY))
        process = self.lab.start(sys.executable, "-SE", "-c", ASKER, *arguments, **pod)
        assert process.stdout.readline() == "done\n"
        return process


def told(name, pid, ip):
    return local.LocalContainer(id=name, pod=name, pid=pid, ips=[ip], opted_in=True)


@pytest.mark.bpf
@pytest.mark.parametrize("share", [1, 0.1])
@pytest.mark.parametrize(("port", "target"), [(50051, 50051), (80, 50051), (8080, 8080)])
def test_every_pair_is_found(lab, share, port, target):
    """The clients' ports are below and above the server's, and beside a port on which somebody else listens."""
    cluster = Cluster(lab)
    cluster.serve(port, target)
    server_pod = cluster.pod("server", 2)
    server = lab.serve("tcp", SERVER, target, REQUEST, REPLY, **server_pod)
    sources = {"below": 36000, "above": 60000, "low": 3000}
    pods = {name: cluster.pod(name, network) for network, name in enumerate(sources, start=3)}
    clients = {name: cluster.connect(port, sources[name], pod) for name, pod in pods.items()}

    # A clock of our own: what has to be in the window is done before its end comes.
    live = LiveWindows(DutyCycle(share, 10.0), lambda: 0.0)
    live.received(
        [told("server", server.pid, SERVER)]
        + [told(name, clients[name].pid, f"10.88.{network}.2") for network, name in enumerate(sources, start=3)]
    )
    live.step(0.0)
    for client in clients.values():
        client.stdin.write("more\n")
        client.stdin.flush()
        assert client.stdout.readline() == "done\n"
    live.step(share * 10.0)
    window = live.window(10.0)
    live.close()
    result = {(flow.source, flow.target): flow.messages for flow in window.flows if flow.by_server}
    missed = [name for name in sources if not result.get((name, "server")) or not result.get(("server", name))]
    # A port below the floor that talks with one above it counts as the server's.
    assert missed == (["low"] if target >= EPHEMERAL_FLOOR else [])
    assert {flow.source for flow in window.flows} - {*sources, "server"} <= {f"{SERVICE}:{sources['low']}"} & {
        f"{SERVICE}:{sources[name]}" for name in missed
    }, "no second edge to the Service"
    assert window.services == (f"{SERVICE}:{port}",)
    assert all(ends in [("server", name), (name, "server")] for ends in result for name in set(ends) - {"server"})


ROW = "{:4}: {}:{:04X} 00000000:0000 {} 00000000:00000000 00:00000000 00000000     0        0 141043 1 0\n"


def table(*rows):
    heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    return heading + "".join(ROW.format(at, address, port, state) for at, (address, port, state) in enumerate(rows))


def namespace_of(proc, pid, *rows):
    (proc / str(pid) / "net").mkdir(parents=True, exist_ok=True)
    (proc / str(pid) / "net/tcp").write_text(table(*rows))


LISTENER, ESTABLISHED = "0A", "01"


def test_what_is_listened_on_is_read_up_to_the_first_connection(tmp_path):
    file = tmp_path / "tcp"
    many = [("0100007F", port, LISTENER) for port in range(40000, 40100)]
    file.write_text(table(*many, ("00000000", 80, ESTABLISHED)) + "not for us")
    assert listened(file) == set(range(40000, 40100))


def test_this_machine_s_own_listeners_are_among_them():
    with socket.create_server(("127.0.0.1", 0)) as v4, socket.create_server(("::1", 0), family=socket.AF_INET6) as v6:
        container = LocalContainer("c", "pod", frozenset(), pids=frozenset({os.getpid()}))
        known = ListeningPoll().poll([container], again=False)
        assert {v4.getsockname()[1], v6.getsockname()[1]} <= known.ports["pod"]


def container(name, pid, **fields):
    return LocalContainer(name, f"pod-{name}", frozenset({pid}), pids=frozenset({pid}), **fields)


def test_it_is_kept_fresh(tmp_path):
    """New listeners come in, old ones go, and with a pod all of its own."""
    web, db = container("web", 7), container("db", 8, host_network=True)
    namespace_of(tmp_path, 7, ("00000000", 80, LISTENER))
    namespace_of(tmp_path, 8, ("00000000", 5432, LISTENER))
    polling = ListeningPoll(tmp_path)
    assert polling.poll([web, db], again=False).ports == {"pod-web": {80}, HOST: {5432}}
    namespace_of(tmp_path, 7, ("00000000", 81, LISTENER))
    assert polling.poll([web, db], again=False).ports["pod-web"] == {80}, "not looked at"
    assert polling.poll([web, db], again=True).everywhere() == {81, 5432}
    assert polling.poll([db], again=True).everywhere() == {5432}


def test_the_next_look_goes_on_where_time_was_up(tmp_path):
    """Each namespace costs more than a whole look may."""
    containers = [container(str(pid), pid) for pid in range(1, 4)]
    for pid in range(1, 4):
        namespace_of(tmp_path, pid, ("00000000", pid, LISTENER))
    polling = ListeningPoll(tmp_path, iter(range(100)).__next__)
    seen = [polling.poll(containers, again=True).everywhere() for _ in range(3)]
    assert seen == [{1}, {1, 2}, {1, 2, 3}]
    for pid in range(1, 4):
        namespace_of(tmp_path, pid, ("00000000", 10 + pid, LISTENER))
    seen = [polling.poll(containers, again=True).everywhere() for _ in range(3)]
    assert seen == [{11, 2, 3}, {11, 12, 3}, {11, 12, 13}]


def test_young_namespaces_are_looked_at_before_old_ones(tmp_path):
    """A program listens some time after its container began."""
    old, young = container("old", 1), container("young", 2)
    namespace_of(tmp_path, 1, ("00000000", 1, LISTENER))
    namespace_of(tmp_path, 2)
    polling = ListeningPoll(tmp_path, iter(range(100)).__next__)
    for _ in range(YOUNG):
        polling.poll([old], again=True)
    polling.poll([old, young], again=True)
    namespace_of(tmp_path, 2, ("00000000", 50051, LISTENER))
    assert polling.poll([old, young], again=True).ports["pod-young"] == {50051}


def test_a_container_that_has_ended_is_nothing_to_look_at(tmp_path):
    assert ListeningPoll(tmp_path).poll([container("web", 7)], again=True).ports == {}


ELSEWHERE = ip_address("10.9.9.9")


@pytest.mark.parametrize(
    ("known", "by_server"),
    [(frozenset({50051}), False), (frozenset({36000}), True), (None, True)],
    ids=["another port is listened on", "it is listened on", "nothing is known"],
)
def test_whom_nobody_could_connect_to_is_a_client(known, by_server):
    """With a server on another node, whose listeners are not seen from here."""
    web = container("web", 7)
    counted = {FlowKey(7, peer(ELSEWHERE), 36000, True, TCP): Volume(1, 1, 2, 2)}
    listening = Listening({} if known is None else {"pod-web": known})
    edges = attribute(counted, ContainerIndex.of([web]), listening).edges
    assert {(edge.source, edge.target, edge.by_server) for edge in edges} == {
        (Local("pod-web", "web"), Remote(ELSEWHERE), by_server),
        (Remote(ELSEWHERE), Local("pod-web", "web"), by_server),
    }
