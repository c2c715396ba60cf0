"""Without BPF: needs no more than root, for other network namespaces."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enforcer.observe.bpf.counters import TCP, Volume
from enforcer.observe.collectors import inet_diag
from enforcer.observe.collectors.diag_wire import ESTABLISHED, DiagError, TcpConnection, parse, request
from tests.enforcer.observe.observe_lab import flows

REQUESTS, REQUEST, REPLY = 23, 101, 1009
ASKED, ANSWERED = REQUESTS * REQUEST, REQUESTS * REPLY


@pytest.mark.bpf
@pytest.mark.parametrize(("client", "server"), [("10.87.0.1", "10.87.0.2"), ("fd87::1", "fd87::2")])
def test_open_connections_are_counted_in_the_namespaces_of_others(lab, pods, client, server):
    namespaces = [Path("/run/netns") / pod["namespace"] for pod in pods.values()]
    collector = inet_diag.open_collector(lambda: namespaces)
    collector.attach()
    lab.serve("tcp", server, 5003, REQUEST, REPLY, **pods["server"])
    with lab.asking("tcp", server, 5003, REQUEST, REPLY, REQUESTS, **pods["client"]):
        counted = flows(collector.drain(), pods)
    collector.close()
    assert counted.keys() == {("client", server, 5003, False, TCP), ("server", client, 5003, True, TCP)}
    own, other = counted["client", server, 5003, False, TCP], counted["server", client, 5003, True, TCP]
    assert (own.tx_bytes, own.rx_bytes) == (ASKED, ANSWERED)
    assert (other.tx_bytes, other.rx_bytes) == (ANSWERED, ASKED)
    assert own.tx_messages == own.rx_messages == REQUESTS


@pytest.mark.bpf
def test_what_a_connection_moved_before_is_not_counted(lab, pods):
    namespaces = [Path("/run/netns") / pod["namespace"] for pod in pods.values()]
    collector = inet_diag.open_collector(lambda: namespaces)
    lab.serve("tcp", "10.87.0.2", 5003, REQUEST, REPLY, **pods["server"])
    with lab.asking("tcp", "10.87.0.2", 5003, REQUEST, REPLY, REQUESTS, **pods["client"]):
        collector.attach()
        counted = flows(collector.drain(), pods)
    collector.close()
    assert all(volume.tx_bytes == volume.rx_bytes == 0 for volume in counted.values())


@pytest.mark.bpf
def test_what_a_connection_moved_before_its_namespace_was_known_is_not_counted(lab, pods):
    """As where the runtime lists what runs already while connections are counted."""
    namespaces: list[Path] = []
    collector = inet_diag.open_collector(lambda: namespaces)
    collector.attach()
    lab.serve("tcp", "10.87.0.2", 5003, REQUEST, REPLY, **pods["server"])
    with lab.asking("tcp", "10.87.0.2", 5003, REQUEST, REPLY, REQUESTS, **pods["client"]):
        namespaces += [Path("/run/netns") / pod["namespace"] for pod in pods.values()]
        counted = flows(collector.drain(), pods)
    collector.close()
    assert not counted


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ((1 << 40, 5), (1 << 40, 5), Volume(0, 0, 7, 7)),
        ((1 << 42, (1 << 32) - 3), ((1 << 42) + 6000, 1), Volume(6000, 4, 7, 7)),
        ((1 << 40, 900), ((1 << 40) - 1448, 900), Volume(0, 0, 7, 7)),
    ],
    ids=["nothing sent", "the kernel's 32 bits of segments begin anew", "what is sent again counts before it is sent"],
)
def test_a_counter_that_steps_back_does_not_count_the_whole_connection_again(before, after, moved):
    def at(sent: tuple[int, int], received: int) -> TcpConnection:
        return TcpConnection(1, ESTABLISHED, bytes(16), 5003, bytes(16), 40000, 7, *sent, received, received)

    assert inet_diag.since(at(after, 107), at(before, 100)) == moved


def test_a_refusal_names_its_errno():
    refusal = (
        (36).to_bytes(4, "little") + (2).to_bytes(2, "little") + bytes(10) + (-2).to_bytes(4, "little", signed=True)
    )
    with pytest.raises(DiagError, match="errno 2"):
        parse(refusal + bytes(16))


@given(st.binary(max_size=400))
def test_bytes_that_are_no_answer_do_no_harm(data):
    try:
        connections, _ = parse(data)
    except DiagError:
        return
    assert isinstance(connections, list)


def test_a_request_says_its_own_length():
    data = request(2)
    assert int.from_bytes(data[:4], "little") == len(data)
