import pytest

from enforcer.observe.bpf.counters import CgroupPair, Volume
from enforcer.observe.collectors import unix_sockets

pytestmark = [pytest.mark.bpf, pytest.mark.usefixtures("way")]

REQUESTS, REQUEST, REPLY = 23, 101, 1009


@pytest.fixture
def collector(lab, allowed, way):
    made = allowed(unix_sockets.open_collector)
    yield made
    made.close()


def sent(collector, *cgroups):
    """{(source, target, pid known): (bytes, messages)} from these cgroups."""
    ids = {cgroup.id for cgroup in cgroups}
    return {key: volume for key, volume in collector.drain().counters.items() if key.source in ids}


def test_both_directions_of_a_stream_are_counted_between_the_two_cgroups(lab, collector, tmp_path):
    client, server = lab.cgroup("client"), lab.cgroup("server")
    path = str(tmp_path / "stream")
    lab.serve("unix", path, 0, REQUEST, REPLY, cgroup=server)
    lab.ask("unix", path, 0, REQUEST, REPLY, REQUESTS, cgroup=client)
    assert sent(collector, client, server) == {
        CgroupPair("unix", client.id, server.id): Volume(REQUESTS * REQUEST, REQUESTS),
        CgroupPair("unix", server.id, client.id): Volume(REQUESTS * REPLY, REQUESTS),
    }


def test_connected_datagrams_find_the_cgroup_of_the_receiving_socket(lab, collector, tmp_path):
    """The server answers by sendto, where the socket has no peer to tell of."""
    client, server = lab.cgroup("client"), lab.cgroup("server")
    path = str(tmp_path / "datagrams")
    lab.serve("unixgram", path, 0, REQUEST, REPLY, cgroup=server)
    lab.ask("unixgram", path, 0, REQUEST, REPLY, REQUESTS, cgroup=client)
    assert sent(collector, client, server) == {
        CgroupPair("unix", client.id, server.id): Volume(REQUESTS * REQUEST, REQUESTS),
        CgroupPair("unix", server.id, 0): Volume(REQUESTS * REPLY, REQUESTS),
    }


def test_inside_one_cgroup_nothing_is_counted(lab, collector, tmp_path):
    alone = lab.cgroup("alone")
    path = str(tmp_path / "stream")
    lab.serve("unix", path, 0, REQUEST, REPLY, cgroup=alone)
    lab.ask("unix", path, 0, REQUEST, REPLY, REQUESTS, cgroup=alone)
    assert sent(collector, alone) == {}
