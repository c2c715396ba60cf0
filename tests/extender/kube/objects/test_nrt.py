"""NodeResourceTopology objects say what is free on each NUMA node."""

import json

import pytest

from extender.kube.objects.nrt import topology
from extender.kube.publish import Publisher
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Occupancy, Reservation
from tests.extender.kube.objects.published import GI, MACHINE
from tests.lab.standins.apiserver.recorded import exchanges
from tests.manifests.structural import of_object, violations
from tests.supervised import threads

RESERVATION = Reservation(
    key="u1",
    pod="u1",
    group="shop/cart",
    numa_nodes=NumaSet.parse("0"),
    demand=Demand(cpu_milli=1500, memory=8 * GI, hugepages={2 << 20: GI}),
)
OCCUPANCY = Occupancy(reserved=CpuSet.parse("0")).with_reservation(RESERVATION)


*_, RECORDED = exchanges("05-nrt-crd")
DEFINITION = json.loads(RECORDED["request"]["body"])
SCHEMA = of_object(DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


@pytest.fixture
def server(server):
    server.define(DEFINITION)
    return server


def test_it_is_as_the_definition_wants_it():
    assert violations(SCHEMA, topology("n1", MACHINE, OCCUPANCY, "uid-1").body) == []


def test_a_zone_for_each_numa_node():
    zones = topology("n1", MACHINE, OCCUPANCY, "uid-1").body["zones"]
    assert [(zone["name"], zone["type"]) for zone in zones] == [("node-0", "Node"), ("node-1", "Node")]
    assert zones[0]["costs"] == [{"name": "node-0", "value": 10}, {"name": "node-1", "value": 21}]
    assert zones[0]["attributes"] == [{"name": "numakin.io/cpus", "value": "0-31"}]


def test_members_are_those_that_have_opted_in():
    stranger = Reservation("container", "u2", "", NumaSet.parse("0-1"), Demand(cpu_milli=100))
    body = topology("n1", MACHINE, OCCUPANCY.with_reservation(stranger), "uid-1").body
    assert body["attributes"] == [{"name": "numakin.io/members", "value": "1"}]


def test_available_is_what_reservations_leave():
    first, second = topology("n1", MACHINE, OCCUPANCY, "uid-1").body["zones"]
    result = {
        resource["name"]: (resource["capacity"], resource["allocatable"], resource["available"])
        for resource in first["resources"]
    }
    assert result == {
        "cpu": ("32", "31", "29500m"),
        "memory": (str(128 * GI), str(128 * GI), str(120 * GI)),
        "hugepages-2Mi": (str(2 * GI), str(2 * GI), str(GI)),
    }
    assert second["resources"][0]["available"] == "32"


def test_a_full_numa_node_has_nothing_left_and_not_less():
    reservation = Reservation("u2", "u2", "", NumaSet.parse("1"), Demand(cpu_milli=99_000, memory=999 * GI))
    zone = topology("n1", MACHINE, Occupancy().with_reservation(reservation), "uid-1").body["zones"][1]
    assert [resource["available"] for resource in zone["resources"]] == ["0", "0"]


def test_small_changes_of_memory_are_not_worth_a_write():
    def written(more: int) -> bytes:
        demand = Demand(memory=8 * GI - more)
        return topology(
            "n1", MACHINE, Occupancy().with_reservation(Reservation("u", "u", "", NumaSet.parse("0"), demand)), "uid-1"
        ).digest

    assert written(0) == written(1_000_000)
    assert written(0) != written(GI)


def test_the_kubelets_policy_is_not_claimed():
    names = [attribute["name"] for attribute in topology("n1", MACHINE, OCCUPANCY, "uid-1").body["attributes"]]
    assert not any(name.startswith("topologyManager") for name in names)


def test_it_belongs_to_the_node_object_and_goes_with_it():
    (owner,) = topology("n1", MACHINE, OCCUPANCY, "uid-1").body["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-1"}


def test_the_api_server_takes_it(server, api):
    publisher = Publisher(api, lambda: [topology("n1", MACHINE, OCCUPANCY, "uid-1")], threads=threads())
    publisher.round()
    assert publisher.published == 1
    result = server.get("topology.node.k8s.io/v1alpha2", "noderesourcetopologies", "n1")
    assert [zone["name"] for zone in result["zones"]] == ["node-0", "node-1"]


def test_a_node_that_another_updater_publishes_is_left_to_it(server, api):
    theirs = topology("n1", MACHINE, Occupancy(), "uid-1")
    api.apply(theirs.path, theirs.body, manager="nfd")
    publisher = Publisher(api, lambda: [topology("n1", MACHINE, OCCUPANCY, "uid-1")], threads=threads())
    publisher.round()
    assert (publisher.published, publisher.left_to_others) == (0, 1)
