"""From packets to edges: real traffic, real procfs, the chain's choice, the watch, attribution."""

from ipaddress import ip_address

import pytest

from enforcer.machine.mounts import mounted
from enforcer.observe.attribution.attribution import attribute
from enforcer.observe.attribution.containers import ContainerIndex
from enforcer.observe.attribution.edges import Edge, Local
from enforcer.observe.attribution.processes import find_container
from enforcer.observe.collectors import chain, unix_sockets
from enforcer.observe.collectors.duty import DutyCycle
from enforcer.observe.collectors.watch import CollectorPair

pytestmark = pytest.mark.bpf

REQUESTS, REQUEST, REPLY = 23, 101, 1009
CLIENT, SERVER = Local("pod-client", "client"), Local("pod-server", "server")


def test_two_pods_that_talk_by_tcp_and_unix_sockets_become_edges(lab, pods, allowed, tmp_path):
    choice = chain.choose(chain.Sources(chain.cgroup_root(), list))
    watch = CollectorPair([choice.collector, allowed(unix_sockets.open_collector)], DutyCycle(1, 10), 0)
    path = str(tmp_path / "socket")
    served = lab.serve("tcp", "10.87.0.2", 5003, REQUEST, REPLY, **pods["server"])
    lab.serve("unix", path, 0, REQUEST, REPLY, cgroup=pods["server"]["cgroup"])
    mounts = mounted()
    server = find_container("server", "pod-server", served.pid, addresses=(ip_address("10.87.0.2"),), mounts=mounts)

    watch.step(0)
    with lab.asking("tcp", "10.87.0.2", 5003, REQUEST, REPLY, REQUESTS, **pods["client"]) as asking:
        lab.ask("unix", path, 0, REQUEST, REPLY, REQUESTS, cgroup=pods["client"]["cgroup"])
        client = find_container("client", "pod-client", asking.pid, addresses=(ip_address("10.87.0.1"),), mounts=mounts)
    reading = watch.read(7)
    watch.close()

    # The client has ended by now.
    result = attribute(reading.delta.counters, ContainerIndex.of([client, server]).after([server]))
    asked, answered = (REQUESTS * REQUEST, REQUESTS), (REQUESTS * REPLY, REQUESTS)
    assert set(result.edges) == {
        Edge("tcp", CLIENT, SERVER, *asked, 5003, True),
        Edge("tcp", SERVER, CLIENT, *answered, 5003, True),
        Edge("unix", CLIENT, SERVER, *asked),
        Edge("unix", SERVER, CLIENT, *answered),
    }


def test_a_container_is_known_by_its_own_cgroup_and_those_below(lab, pods):
    served = lab.serve("tcp", "10.87.0.2", 5003, REQUEST, REPLY, **pods["server"])
    below = pods["server"]["cgroup"].path / "below"
    below.mkdir()
    inner = below.stat().st_ino
    container = find_container("server", "pod", served.pid, mounts=mounted())
    below.rmdir()
    assert container.cgroup_ids == {pods["server"]["cgroup"].id, inner}
    assert served.pid in container.pids


def test_a_process_that_has_ended_is_named(lab):
    with pytest.raises(ProcessLookupError, match="container c has ended"):
        find_container("c", "pod", (1 << 22) + 1, mounts=mounted())
