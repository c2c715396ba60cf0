import pytest

from enforcer.observe import cgroup_skb
from enforcer.observe.counters import TCP, UDP, Flow, Volume, address

pytestmark = pytest.mark.bpf

REQUESTS, REQUEST, REPLY = 23, 101, 1009


@pytest.fixture
def collector(lab):
    made = cgroup_skb.open_collector(lab.root.path)
    made.attach()
    yield made
    made.close()


@pytest.fixture
def pods(lab):
    """Two pods on one wire: (cgroup, namespace) of client and server."""
    client, server = lab.namespace(), lab.namespace()
    lab.veth(client, server, ["10.87.0.1/24", "fd87::1/64"], ["10.87.0.2/24", "fd87::2/64"])
    return {
        "client": {"cgroup": lab.cgroup("client"), "namespace": client},
        "server": {"cgroup": lab.cgroup("server"), "namespace": server},
    }


@pytest.mark.parametrize("kind", ["tcp", "udp", "sendto"])
@pytest.mark.parametrize(("client", "server"), [("10.87.0.1", "10.87.0.2"), ("fd87::1", "fd87::2")])
def test_both_ends_count_every_byte_and_message_in_both_directions(lab, pods, collector, kind, client, server):
    lab.serve("udp" if kind == "sendto" else kind, server, 5003, REQUEST, REPLY, **pods["server"])
    lab.ask(kind, server, 5003, REQUEST, REPLY, REQUESTS, **pods["client"])

    counted = {
        (flow.cgroup, str(address(flow.peer)), flow.port, flow.server, flow.protocol): volume
        for flow, volume in collector.drain().counters.items()
        if isinstance(flow, Flow)
    }
    protocol = TCP if kind == "tcp" else UDP
    asked, answered = REQUESTS * REQUEST, REQUESTS * REPLY
    assert counted == {
        (pods["client"]["cgroup"].id, server, 5003, False, protocol): Volume(asked, REQUESTS, answered, REQUESTS),
        (pods["server"]["cgroup"].id, client, 5003, True, protocol): Volume(answered, REQUESTS, asked, REQUESTS),
    }
