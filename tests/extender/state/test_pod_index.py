"""Which pods are here, by address and by workload, as they come, change and go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.state.pod_index import LINGER_S, OUTSIDE, PodIndex, RemoteEnd, address
from extender.state.pods import Changes, PodRow

MEMBER = PodRow("u1", "ns", "web", "n1", {"group.numakin.io": "shop"}, ip="10.0.0.1")
STRANGER = replace(MEMBER, annotations={})


@pytest.mark.parametrize("rows", [(MEMBER, STRANGER), (STRANGER, MEMBER), (MEMBER, STRANGER, MEMBER)])
def test_a_pod_whose_annotations_change_is_gone_when_it_is_deleted(rows: tuple[PodRow, ...]) -> None:
    index = PodIndex()
    for row in rows:
        index.apply(Changes((row,)), 0.0)
    assert index.by_ip("10.0.0.1") == ("u1" if rows[-1] is MEMBER else OUTSIDE)
    index.apply(Changes(gone=("u1",)), 1.0)
    assert index.replicas() == {}
    index.tidy(1.0 + LINGER_S, 0.0)
    assert index.by_ip("10.0.0.1") is None


def test_a_pod_that_comes_again_with_its_uid_keeps_its_address() -> None:
    """As a static pod's mirror does."""
    index = PodIndex()
    index.apply(Changes((MEMBER,)), 0.0)
    index.apply(Changes(gone=("u1",)), 1.0)
    index.apply(Changes((replace(MEMBER, ip="10.0.0.2"),)), 2.0)
    index.tidy(2.0 + LINGER_S, 0.0)
    assert index.by_ip("10.0.0.2") == "u1"
    assert index.by_ip("10.0.0.1") is None


@pytest.mark.parametrize("row", [MEMBER, STRANGER], ids=["opted in", "not"])
def test_a_pod_with_another_address_gives_up_the_one_that_it_had(row: PodRow) -> None:
    """As when its sandbox is made anew."""
    index = PodIndex()
    index.apply(Changes((row,)), 0.0)
    index.apply(Changes((replace(row, ip="10.0.0.2"),)), 1.0)
    assert index.by_ip("10.0.0.1") is None
    assert index.by_ip("10.0.0.2") == ("u1" if row is MEMBER else OUTSIDE)
    index.apply(Changes(gone=("u1",)), 2.0)
    index.tidy(2.0 + LINGER_S, 0.0)
    assert index.by_ip("10.0.0.2") is None


@pytest.mark.parametrize(
    ("ip", "at"),
    [("10.0.1.1", "10.0.1.1:9100"), ("fd00::1", "[fd00::1]:9100"), ("fd00::1", "[FD00:0::1]:9100")],
    ids=["IPv4", "IPv6", "IPv6 in other words"],
)
def test_a_pod_on_its_nodes_network_is_known_by_the_port_that_it_serves(ip: str, at: str) -> None:
    index = PodIndex()
    index.apply(Changes((replace(MEMBER, ip=ip, host_network=True),)), 0.0)
    index.serves("u1", 9100)
    served, another = address(at), address(at.removesuffix("9100") + "9101")
    assert served is not None
    assert another is not None
    assert (index.server(served), index.server(another)) == ("u1", None)


def test_a_pod_of_both_address_families_is_known_by_either_address() -> None:
    index = PodIndex()
    both = replace(MEMBER, other_ips=("fd00::1",))
    assert index.apply(Changes((both,)), 0.0) == ["10.0.0.1", "fd00::1"]
    assert (index.by_ip("10.0.0.1"), index.by_ip("fd00::1")) == ("u1", "u1")
    index.apply(Changes(gone=("u1",)), 1.0)
    index.tidy(1.0 + LINGER_S, 0.0)
    assert (index.by_ip("10.0.0.1"), index.by_ip("fd00::1")) == (None, None)


def test_on_its_nodes_network_it_serves_a_port_at_either() -> None:
    index = PodIndex()
    index.apply(Changes((replace(MEMBER, ip="10.0.1.1", other_ips=("fd00::1",), host_network=True),)), 0.0)
    assert index.serves("u1", 9100) == ["10.0.1.1", "fd00::1"]
    assert index.serves("u1", 9100) == []
    assert [index.server(RemoteEnd(ip, 9100)) for ip in ("10.0.1.1", "fd00::1")] == ["u1", "u1"]
