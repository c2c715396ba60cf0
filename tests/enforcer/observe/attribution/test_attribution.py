"""Who is an edge between, and what is left over."""

from ipaddress import ip_address

import pytest

from enforcer.observe.attribution.attribution import attribute
from enforcer.observe.attribution.edges import Edge, Local, Remote, Unattributed
from enforcer.observe.bpf.counters import TCP, UDP, CgroupPair, FlowKey, Volume, by_address, peer
from numakin.placement.traffic.graph import Amount
from tests.enforcer.observe.attribution.residents import (
    AGENT,
    ANSWERS,
    APP,
    DB,
    DB_IP,
    EXPORTER,
    NODE,
    OTHER_POD,
    OUTSIDE,
    PAIR_IP,
    REQUESTS,
    RESIDENTS,
    SERVICE,
    SIDECAR,
    UNKNOWN_CGROUP,
    WEB,
    WEB_IP,
    asked,
    both_ways,
    container,
    end,
    served,
)


def test_a_pair_on_one_node_is_counted_once_by_its_server():
    result = attribute(served(DB, WEB_IP, 5432, ANSWERS) | asked(WEB, DB_IP, 5432, REQUESTS), RESIDENTS)
    assert set(result.edges) == both_ways(end(DB), end(WEB), ANSWERS, 5432)
    assert not result.unattributed


@pytest.mark.parametrize("peer_address", [OUTSIDE, OTHER_POD, ip_address("2001:db8::5")])
def test_who_is_elsewhere_stays_an_address(peer_address):
    result = attribute(served(DB, peer_address, 5432, ANSWERS) | asked(WEB, peer_address, 443, REQUESTS), RESIDENTS)
    assert set(result.edges) == both_ways(end(DB), Remote(peer_address), ANSWERS, 5432) | both_ways(
        end(WEB), Remote(peer_address), REQUESTS, 443, by_server=False
    )


def test_the_one_container_of_a_pod_that_asks_is_the_client():
    result = attribute(served(DB, PAIR_IP, 5432, ANSWERS) | asked(APP, DB_IP, 5432, REQUESTS), RESIDENTS)
    assert set(result.edges) == both_ways(end(DB), end(APP), ANSWERS, 5432)


@pytest.mark.parametrize(
    "askers",
    [asked(APP, SERVICE, 80, REQUESTS), asked(APP, DB_IP, 5432, REQUESTS) | asked(SIDECAR, DB_IP, 5432, REQUESTS)],
    ids=["through a Service", "both ask"],
)
def test_a_pod_of_several_containers_is_named_as_a_pod_where_the_client_cannot_be_told(askers):
    result = attribute(served(DB, PAIR_IP, 5432, ANSWERS) | askers, RESIDENTS)
    assert {edge for edge in result.edges if edge.by_server} == both_ways(end(DB), Local("pod-pair"), ANSWERS, 5432)


@pytest.mark.parametrize("address", [ip_address("127.0.0.1"), ip_address("127.9.9.9"), ip_address("::1"), PAIR_IP])
def test_inside_a_pod_the_port_joins_client_and_server(address):
    result = attribute(served(APP, address, 8080, ANSWERS) | asked(SIDECAR, address, 8080, REQUESTS), RESIDENTS)
    assert set(result.edges) == both_ways(end(SIDECAR), end(APP), REQUESTS, 8080)


def test_ends_known_by_their_address_alone_are_their_pods():
    """Where the runtime uses cgroup v1, all are in the root of cgroup v2."""
    database, web, pair = (by_address(peer(address)) for address in (DB_IP, WEB_IP, PAIR_IP))
    result = attribute(
        {
            FlowKey(database, peer(WEB_IP), 5432, True, TCP): ANSWERS,
            FlowKey(web, peer(DB_IP), 5432, False, TCP): REQUESTS,
            FlowKey(pair, peer(OUTSIDE), 443, False, TCP): REQUESTS,
        },
        RESIDENTS,
    )
    assert set(result.edges) == both_ways(end(DB), end(WEB), ANSWERS, 5432) | both_ways(
        Local("pod-pair"), Remote(OUTSIDE), REQUESTS, 443, by_server=False
    )


def test_the_same_port_in_another_pod_is_another_server():
    loopback = ip_address("127.0.0.1")
    result = attribute(
        served(APP, loopback, 8080, ANSWERS)
        | asked(SIDECAR, loopback, 8080, REQUESTS)
        | served(WEB, loopback, 8080, ANSWERS)
        | asked(WEB, loopback, 8080, REQUESTS),
        RESIDENTS,
    )
    assert set(result.edges) == both_ways(end(SIDECAR), end(APP), REQUESTS, 8080)


def test_loopback_without_a_known_server_is_left_over():
    result = attribute(asked(SIDECAR, ip_address("127.0.0.1"), 8080, REQUESTS), RESIDENTS)
    assert result.edges == ()
    assert result.unattributed == {("tcp", Unattributed.LOOPBACK): Amount(1110, 52)}


def test_a_host_network_server_is_known_by_its_port():
    result = attribute(served(EXPORTER, WEB_IP, 9100, ANSWERS) | asked(WEB, NODE, 9100, REQUESTS), RESIDENTS)
    assert set(result.edges) == both_ways(end(EXPORTER), end(WEB), ANSWERS, 9100)


def test_a_daemon_of_the_host_is_the_nodes_address():
    result = attribute(asked(WEB, NODE, 10250, REQUESTS), RESIDENTS)
    assert set(result.edges) == both_ways(end(WEB), Remote(NODE), REQUESTS, 10250, by_server=False)


def test_a_host_network_client_is_known_by_whom_it_asks():
    result = attribute(served(DB, NODE, 5432, ANSWERS) | asked(AGENT, DB_IP, 5432, REQUESTS), RESIDENTS)
    assert set(result.edges) == both_ways(end(DB), end(AGENT), ANSWERS, 5432)


def test_two_host_network_clients_share_by_what_they_sent():
    result = attribute(
        served(DB, NODE, 5432, Volume(4000, 40, 400, 40))
        | asked(AGENT, DB_IP, 5432, Volume(300, 30, 3000, 30))
        | asked(EXPORTER, DB_IP, 5432, Volume(100, 10, 1000, 10)),
        RESIDENTS,
    )
    assert set(result.edges) == both_ways(end(DB), end(AGENT), Volume(3000, 30, 300, 30), 5432) | both_ways(
        end(DB), end(EXPORTER), Volume(1000, 10, 100, 10), 5432
    )


def test_containers_of_the_hosts_network_meet_on_loopback():
    result = attribute(
        served(EXPORTER, ip_address("127.0.0.1"), 9100, ANSWERS) | asked(AGENT, NODE, 9100, REQUESTS), RESIDENTS
    )
    assert set(result.edges) == both_ways(end(AGENT), end(EXPORTER), REQUESTS, 9100)


@pytest.mark.parametrize("server", [True, False])
def test_traffic_of_no_container_is_counted_not_dropped(server):
    result = attribute({FlowKey(UNKNOWN_CGROUP, peer(OUTSIDE), 443, server, TCP): REQUESTS}, RESIDENTS)
    assert result.edges == ()
    assert result.unattributed == {("tcp", Unattributed.NO_CONTAINER): Amount(1110, 52)}


def test_a_host_daemon_that_asks_a_pod_is_counted_by_the_pod_alone():
    result = attribute(
        {FlowKey(UNKNOWN_CGROUP, peer(WEB_IP), 8080, False, TCP): REQUESTS} | served(WEB, NODE, 8080, ANSWERS),
        RESIDENTS,
    )
    assert set(result.edges) == both_ways(end(WEB), Remote(NODE), ANSWERS, 8080)
    assert not result.unattributed


@pytest.mark.parametrize("unspecified", ["0.0.0.0", "::"])
def test_unconnected_udp_seen_at_the_socket_is_left_over(unspecified):
    result = attribute(served(DB, ip_address(unspecified), 53, ANSWERS, UDP), RESIDENTS)
    assert result.unattributed == {("udp", Unattributed.UNCONNECTED): Amount(1110, 52)}


def test_unix_sockets_join_cgroups_or_the_process_behind_them():
    result = attribute(
        {
            CgroupPair("unix", 11, 12): Volume(1009, 23),
            CgroupPair("unix", 12, 0, 111): Volume(101, 29),
            CgroupPair("unix", 13, 0, 7777): Volume(17, 1),
            CgroupPair("unix", 13, UNKNOWN_CGROUP): Volume(19, 1),
        },
        RESIDENTS,
    )
    assert set(result.edges) == {
        Edge("unix", end(WEB), end(DB), 1009, 23),
        Edge("unix", end(DB), end(WEB), 101, 29),
    }
    assert result.unattributed == {
        ("unix", Unattributed.PEER_GONE): Amount(17, 1),
        ("unix", Unattributed.NO_CONTAINER): Amount(19, 1),
    }


def test_wake_ups_are_edges_only_where_nothing_else_is():
    result = attribute(
        served(DB, WEB_IP, 5432, ANSWERS)
        | {
            CgroupPair("wake", 11, 12): Volume(0, 23),
            CgroupPair("wake", 12, 11): Volume(0, 29),
            CgroupPair("wake", 11, 13): Volume(0, 31),
        },
        RESIDENTS,
    )
    assert {edge for edge in result.edges if edge.kind == "wake"} == {Edge("wake", end(WEB), end(APP), 0, 31)}


def test_nor_where_it_is_not_known_which_container_of_a_pod_it_was_with():
    """The address of the client is its pod's, which has two containers."""
    result = attribute(
        served(DB, PAIR_IP, 5432, ANSWERS)
        | {CgroupPair("wake", 12, 13): Volume(0, 23), CgroupPair("wake", 13, 12): Volume(0, 29)},
        RESIDENTS,
    )
    assert {edge.kind for edge in result.edges} == {"tcp"}


def test_what_a_container_does_with_itself_is_no_edge():
    loopback = ip_address("127.0.0.1")
    result = attribute(
        served(WEB, loopback, 80, ANSWERS)
        | asked(WEB, loopback, 80, REQUESTS)
        | {CgroupPair("unix", 11, 11): Volume(7, 1)},
        RESIDENTS,
    )
    assert result.edges == ()
    assert not result.unattributed


def test_a_container_that_has_gone_since_is_still_attributed():
    residents = RESIDENTS.after([DB], [NODE])
    result = attribute(served(DB, WEB_IP, 5432, ANSWERS) | {CgroupPair("unix", 11, 12): Volume(7, 1)}, residents)
    assert both_ways(end(DB), end(WEB), ANSWERS, 5432) | {Edge("unix", end(WEB), end(DB), 7, 1)} == set(result.edges)


def test_an_address_given_again_is_its_new_pods():
    heir = container("heir", 21, WEB_IP)
    result = attribute(served(DB, WEB_IP, 5432, ANSWERS), RESIDENTS.after([DB, heir], [NODE]))
    assert set(result.edges) == both_ways(end(DB), end(heir), ANSWERS, 5432)
