"""A node whose containers are in cgroup v1: their traffic is told apart all the same, or it is said that it is not."""

import json
import os
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest

from enforcer.machine.mounts import CgroupMounts, mounted
from enforcer.observe.attribution.attribution import attribute
from enforcer.observe.attribution.containers import ContainerIndex, LocalContainer
from enforcer.observe.attribution.edges import Edge, Local
from enforcer.observe.attribution.identity import SocketIdentity
from enforcer.observe.attribution.processes import find_container, network_namespace
from enforcer.observe.attribution.unseen import HOST_NETWORK, NO_ADDRESS, unseen
from enforcer.observe.bpf.counters import TCP, by_address, peer
from enforcer.observe.bpf.counters import FlowKey as Counted
from enforcer.observe.collectors import socket_tracepoints
from enforcer.observe.collectors.duty import DutyCycle
from enforcer.observe.collectors.watch import CollectorPair
from enforcer.observer.windows import LiveWindows
from lab.standins.patience import PATIENCE_S
from numakin.placement.traffic.graph import Flow
from numakin.wire import local_pb2 as local

REQUESTS, REQUEST, REPLY = 23, 101, 1009
ASKED, ANSWERED = REQUESTS * REQUEST, REQUESTS * REPLY

LIVE = """
import json, sys, time
from enforcer.observe.collectors.duty import DutyCycle
from enforcer.observer.windows import LiveWindows
from numakin.wire import local_pb2 as local
live = LiveWindows(DutyCycle(1), time.monotonic)
live.step(time.monotonic())
live.received([local.LocalContainer(**one) for one in json.loads(sys.stdin.readline())])
print(json.dumps([live.collector, dict(live.unseen)]), flush=True)
live.received([local.LocalContainer(**one) for one in json.loads(sys.stdin.readline())])
print(live.window(time.monotonic()).to_json(), flush=True)
"""

WITHOUT_CGROUP_V2 = 'for at in $(grep " cgroup2 " /proc/mounts | cut -d" " -f2); do umount $at; done; exec "$@"'


@pytest.fixture
def live(lab, bpf_allowed):
    """The traffic source in a mount namespace without cgroup v2."""
    command = ["unshare", "-m", "sh", "-c", WITHOUT_CGROUP_V2, "sh", sys.executable, "-c", LIVE]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def hear(*containers):
            process.stdin.write(json.dumps(containers) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield hear
        process.kill()


def told(name, pid, *ips, host=False):
    return {"id": name, "pod": f"pod-{name}", "pid": pid, "ips": ips, "host_network": host, "opted_in": True}


@pytest.mark.bpf
@pytest.mark.parametrize("addresses", [("10.87.0.1", "10.87.0.2"), ("10.99.9.1", "10.99.9.2")], ids=["its", "another"])
def test_pods_that_talk_are_seen_by_their_network(lab, pods, live, addresses):
    """Also with an address that the runtime does not tell, of a second interface."""
    inside = {name: {"namespace": pod["namespace"]} for name, pod in pods.items()}
    server = lab.serve("tcp", "10.87.0.2", 5003, REQUEST, REPLY, **inside["server"])
    collector, blind = live(told("server", server.pid, addresses[1]), told("agent", os.getpid(), host=True))
    assert collector == "socket_tracepoints"
    assert blind.keys() <= {HOST_NETWORK}
    with lab.asking("tcp", "10.87.0.2", 5003, REQUEST, REPLY, REQUESTS, **inside["client"]) as client:
        window = live(told("client", client.pid, "10.87.0.1"), told("server", server.pid, addresses[1]))
    sizes = {(source, target): size for source, target, kind, size, _, by_server in window["flows"] if by_server}
    # Counted from a moment after the window's beginning, and scaled to all of it.
    assert sizes == pytest.approx(
        {("pod-client", "pod-server"): ASKED, ("pod-server", "pod-client"): ANSWERED}, rel=0.1
    )


@pytest.mark.bpf
def test_pods_that_share_a_cgroup_v2_are_seen_by_their_network(lab, pods, bpf_allowed):
    """As where the runtime makes cgroups in version 1 alone, and leaves every container in its own of version 2."""
    if "cpuset" not in mounted().controllers:
        pytest.skip("cgroup v1 has no cpusets here")
    runtime = lab.cgroup("runtime")
    server = lab.serve("tcp", "10.87.0.2", 5003, REQUEST, REPLY, cgroup=runtime, namespace=pods["server"]["namespace"])
    source = LiveWindows(DutyCycle(1), lambda: 0.0)
    assert source.collector == "cgroup_skb"
    client = {"cgroup": runtime, "namespace": pods["client"]["namespace"]}
    with lab.asking("tcp", "10.87.0.2", 5003, REQUEST, REPLY, REQUESTS, **client) as asking:
        containers = [told("client", asking.pid, "10.87.0.1"), told("server", server.pid, "10.87.0.2")]
        source.received([local.LocalContainer(**container) for container in containers])
        assert source.collector == "socket_tracepoints"
        source.step(0.0)
        with lab.asking("tcp", "10.87.0.2", 5003, REQUEST, REPLY, REQUESTS, **client):
            window = source.window(10.0)
    source.close()
    assert set(window.flows) == {
        Flow("pod-client", "pod-server", "tcp", ASKED, REQUESTS, True),
        Flow("pod-server", "pod-client", "tcp", ANSWERED, REQUESTS, True),
    }


@pytest.mark.bpf
def test_doctor_says_how_pods_are_told_apart(bpf_allowed):
    doctor = [sys.executable, "-m", "enforcer", "doctor", "--json"]
    command = ["unshare", "-m", "sh", "-c", WITHOUT_CGROUP_V2, "sh", *doctor]
    output = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    result = {load["text"]: load["grade"] for load in json.loads(output.stdout) if load["topic"] == "traffic"}
    assert (
        result["cgroup v1: a pod without a cgroup v2 of its own is known by its address and network namespace"]
        == "note"
    )
    assert result["unix sockets and wake-ups are not seen: cgroup v2 is not mounted"] == "note"


@pytest.mark.bpf
def test_pods_in_the_host_s_network_are_told_apart_by_their_processes(lab, allowed):
    host = network_namespace(os.getpid())
    identity = SocketIdentity(by_namespace=True, host_namespace=host)
    collector = allowed(lambda: socket_tracepoints.open_collector(identity=identity))
    watch = CollectorPair([collector], DutyCycle(1, 10), 0)
    server = lab.serve("tcp", "127.0.0.1", 5003, REQUEST, REPLY)
    watch.step(0)
    with lab.asking("tcp", "127.0.0.1", 5003, REQUEST, REPLY, REQUESTS) as client:
        reading = watch.read(7)
    watch.close()
    first, other = (
        LocalContainer(name, f"pod-{name}", frozenset(), (), host_network=True, pids=frozenset({process.pid}))
        for name, process in (("client", client), ("server", server))
    )
    result = attribute(reading.delta.counters, ContainerIndex.of([first, other]))
    assert set(result.edges) == {
        Edge("tcp", Local("pod-client", "client"), Local("pod-server", "server"), ASKED, REQUESTS, 5003, True),
        Edge("tcp", Local("pod-server", "server"), Local("pod-client", "client"), ANSWERED, REQUESTS, 5003, True),
    }


@pytest.mark.bpf
def test_a_container_s_processes_are_those_of_its_cgroup_v1(tmp_path):
    """Where there is no version 2."""
    cpuset, proc = tmp_path / "cpuset", tmp_path / "proc"
    (cpuset / "kubepods/pod1/c1").mkdir(parents=True)
    (cpuset / "kubepods/pod1/c1/cgroup.procs").write_text("7\n8\n")
    (proc / "7").mkdir(parents=True)
    (proc / "7/cgroup").write_text("3:cpuset:/kubepods/pod1/c1\n2:cpu,cpuacct:/\n1:name=systemd:/x\n")
    result = find_container("c1", "pod1", 7, mounts=CgroupMounts(None, {"cpuset": cpuset}), proc=proc)
    assert result == LocalContainer("c1", "pod1", frozenset(), pids=frozenset({7, 8}))


def test_a_cgroup_that_several_pods_share_is_nobody_s():
    """The runtime's own, where containers are in cgroup v1 alone: what it counts would all be the last pod's."""
    runtime = 5
    first, other = (
        LocalContainer(name, f"pod-{name}", frozenset({runtime}), (ip_address(at),), namespace=namespace)
        for name, at, namespace in (("a", "10.0.0.1", 101), ("b", "10.0.0.2", 102))
    )
    residents = ContainerIndex.of([first, other])
    assert residents.shared_cgroups == {runtime}
    assert residents.by_cgroup(runtime) is None
    assert residents.local_end(Counted(runtime, bytes(16), 80, False, TCP)) is None
    assert residents.local_end(Counted(runtime, bytes(16), 80, False, TCP, namespace=101)) == first
    assert residents.local_end(Counted(by_address(peer(other.addresses[0])), bytes(16), 80, False, TCP, 101)) == other


def test_two_containers_of_a_pod_may_share_what_is_theirs():
    first, other = (LocalContainer(name, "pod", frozenset({5}), namespace=101) for name in "ab")
    residents = ContainerIndex.of([first, other])
    assert residents.by_cgroup(5).pod_uid == "pod"
    assert residents.local_end(Counted(0, bytes(16), 80, False, TCP, 101)) == LocalContainer(
        "", "pod", frozenset({5}), namespace=101
    )


@pytest.mark.parametrize(
    ("container", "collector", "host", "reasons"),
    [
        (LocalContainer("c", "p", frozenset({5})), "cgroup_skb", 0, set()),
        (LocalContainer("c", "p", frozenset({5}), host_network=True), "cgroup_skb", 0, set()),
        (LocalContainer("c", "p", frozenset(), (ip_address("10.0.0.1"),)), "kprobes", 0, set()),
        (LocalContainer("c", "p", frozenset(), namespace=7), "socket_tracepoints", 0, set()),
        (LocalContainer("c", "p", frozenset()), "socket_tracepoints", 9, {NO_ADDRESS}),
        (LocalContainer("c", "p", frozenset(), host_network=True), "socket_tracepoints", 9, set()),
        (LocalContainer("c", "p", frozenset(), host_network=True), "socket_tracepoints", 0, {HOST_NETWORK}),
        (LocalContainer("c", "p", frozenset(), host_network=True), "inet_diag", 9, {HOST_NETWORK}),
        (LocalContainer("c", "p", frozenset(), host_network=True), "cgroup_skb", 9, {HOST_NETWORK}),
    ],
)
def test_who_can_not_be_told_apart_is_said(container, collector, host, reasons):
    assert unseen(ContainerIndex.of([container]), collector, SocketIdentity(True, host)).keys() == reasons
