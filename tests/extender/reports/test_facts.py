"""Facts of members that run already: told again where a node's report shows others, and where nothing changed, not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Reservation, fingerprint
from numakin.wire import convert
from numakin.wire import report_pb2 as pb
from tests.extender.running import GIB, Enforcer, Extender, machine, whole_report

HASH = "6d0bcf7fa2b0a8d1c7a6d86c7b5b5f01"

RESOURCES = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
MAIN = {"name": "main", "image": "x", "resources": RESOURCES}
TRUE = Demand(500, GIB, 2 * GIB)
ESTIMATED = Demand(500, 2 * GIB, 2 * GIB, estimated=frozenset({"cpu", "memory"}))
ASKED = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
GROUP = {"group.numakin.io": "shop"}
ASSUMED = 'numakin_extender_assumed_pods{{bound="true"}} {}.0'
NODE = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n"}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as first:
        first.create_node("n1")
        yield first


def member(server: ApiServer, name: str) -> str:
    """A running member of node n1; its uid."""
    pod = server.create_pod(name, annotations=GROUP, containers=[MAIN])
    server.bind(name, "n1")
    server.set_phase(name, "Running")
    return str(pod["metadata"]["uid"])


def reservation(uid: str, name: str, demand: Demand = TRUE) -> Reservation:
    return Reservation(uid, uid, "default/shop", NumaSet.parse("0"), demand, workload=f"default/Pod/{name}")


def nominated(enforcer: Enforcer, *uids: str) -> None:
    """The nominations of members that were just bound."""
    assert {enforcer.next().expect.pod for _ in uids} == set(uids)


@pytest.fixture
def started(watching: Extender, server: ApiServer) -> tuple[Enforcer, str]:
    """An enforcer with one member, all of whose facts it knows."""
    enforcer = watching.enforcer("n1")
    enforcer.report(machine())
    uid = member(server, "web")
    nominated(enforcer, uid)
    enforcer.send(report=whole_report(2, [reservation(uid, "web")]))
    assert enforcer.next().HasField("ack")
    return enforcer, uid


def last_word(server: ApiServer, enforcer: Enforcer) -> pb.Expect:
    """What came before the nomination of a pod that is bound now: nothing else, or it."""
    uid = member(server, "later")
    expect = enforcer.next().expect
    return expect if expect.pod != uid else pb.Expect()


def test_nothing_is_told_of_members_whose_facts_the_report_shows(started, server: ApiServer) -> None:
    enforcer, _ = started
    assert last_word(server, enforcer) == pb.Expect()


def test_a_hook_that_restarts_within_its_stream_gets_them_again(started) -> None:
    """Its observer keeps the stream, and says everything anew."""
    enforcer, uid = started
    enforcer.send(machine=convert.machine_to(machine()))
    enforcer.send(report=whole_report(1, [reservation(uid, "web", ESTIMATED)]))
    assert enforcer.next().HasField("ack")
    expect = enforcer.next().expect
    assert (expect.pod, expect.numa_nodes, expect.workload) == (uid, "", "default/Pod/web")
    assert convert.demand_from(expect.pod_demand) == TRUE


def test_an_extender_that_restarts_tells_them_to_whoever_lacks_them(started, watching: Extender, server) -> None:
    _, uid = started
    watching.kill()
    watching.start()
    enforcer = watching.enforcer("n1")
    enforcer.report(machine(), reservation(uid, "web", ESTIMATED))
    assert enforcer.next().expect.pod == uid


def test_a_reservation_that_turns_up_with_estimates_is_answered(started, server: ApiServer) -> None:
    enforcer, uid = started
    reservations = [reservation(uid, "web", ESTIMATED)]
    difference = pb.Report(generation=3, base_generation=2, reservations=map(convert.reservation_to, reservations))
    difference.fingerprint = fingerprint(reservations, [])
    enforcer.send(report=difference)
    assert enforcer.next().HasField("ack")
    assert enforcer.next().expect.pod == uid


class TestInPlaceResize:
    """What the node has given counts: an update that is only asked for is not told."""

    @pytest.mark.parametrize("where", ["resources", "allocatedResources"])
    def test_is_told_when_it_is_carried_out(self, started, server: ApiServer, where) -> None:
        enforcer, uid = started
        given = ASKED if where == "resources" else ASKED["requests"]
        server.set_phase("web", "Running", containerStatuses=[{"name": "main", where: given}])
        expect = enforcer.next().expect
        assert (expect.pod, expect.numa_nodes) == (uid, "")
        assert convert.demand_from(expect.pod_demand) == Demand(2000, GIB, 2 * GIB)
        assert [convert.demand_from(container.demand).cpu_milli for container in expect.containers] == [2000]

    def test_is_no_news_where_the_report_showed_it_first(self, started, server: ApiServer) -> None:
        enforcer, uid = started
        enforcer.send(report=whole_report(3, [reservation(uid, "web", Demand(2000, GIB, 2 * GIB))]))
        assert enforcer.next().HasField("ack")
        assert enforcer.next().expect.pod == uid, "the API server's word of then is another"
        server.set_phase("web", "Running", containerStatuses=[{"name": "main", "resources": ASKED}])
        assert last_word(server, enforcer) == pb.Expect()


class TestStaticPods:
    """The node knows them by the hash of their manifest, the API server by the mirror pod's own uid."""

    @pytest.fixture
    def mirror(self, server: ApiServer) -> str:
        mirrored = {"kubernetes.io/config.mirror": HASH, "kubernetes.io/config.hash": HASH, **GROUP}
        pod = server.create_pod("dns-n1", annotations=mirrored, containers=[MAIN], owner=NODE, nodeName="n1")
        return str(pod["metadata"]["uid"])

    def test_are_told_of_by_it(self, watching: Extender, mirror: str) -> None:
        enforcer = watching.enforcer("n1")
        enforcer.report(machine())
        expect = enforcer.next().expect
        assert mirror != HASH
        assert (expect.pod, expect.name, expect.workload) == (HASH, "dns-n1", "default/Pod/dns-n1")

    def test_are_counted_once(self, watching: Extender, mirror: str) -> None:
        enforcer = watching.enforcer("n1")
        enforcer.report(machine())
        assert enforcer.next().expect.pod == HASH
        until(lambda: ASSUMED.format(1) in watching.get("/metrics"), "it is assumed")
        enforcer.send(report=whole_report(2, [reservation(HASH, "dns-n1")]))
        until(lambda: enforcer.next().HasField("ack"), "the report is taken")
        assert ASSUMED.format(0) in watching.get("/metrics")
