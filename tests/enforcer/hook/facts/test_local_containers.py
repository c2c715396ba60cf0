"""What the observer is told of the node's containers."""

from __future__ import annotations

from enforcer.hook.facts.local_containers import LocalContainers
from proto import nri_pb2 as nri
from tests.enforcer.hook.world import container, member, pod


def test_a_container_is_told_as_its_latest_event_has_it() -> None:
    residents = LocalContainers()
    residents.met(member("a"), container("a"))
    started = container("a")
    started.pid = 7
    started.linux.namespaces.add(type="network", path="/proc/7/ns/net")
    residents.met(member("a"), started)
    (only,) = residents.now().values()
    assert (only.id, only.pod, only.pid, only.opted_in) == ("a", "uid-a", 7, True)


def test_who_has_not_opted_in_is_told_too_and_as_such() -> None:
    residents = LocalContainers()
    residents.met(pod("a"), container("a"))
    (only,) = residents.now().values()
    assert not only.opted_in


def test_the_network_of_the_node_is_known_by_a_namespace_that_is_missing() -> None:
    residents, apart = LocalContainers(), member("apart")
    apart.linux.namespaces.append(nri.LinuxNamespace(type="network"))
    residents.met(member("host"), container("host"))
    residents.met(apart, container("apart"))
    assert {key: entry.host_network for key, entry in residents.now().items()} == {"host": True, "apart": False}


def test_who_is_gone_is_told_no_more_whether_it_was_told_before_or_not() -> None:
    residents = LocalContainers()
    for name in ("a", "b"):
        residents.met(member(name), container(name))
    residents.gone("a")
    assert set(residents.now()) == {"b"}
    residents.gone("b")
    assert not residents.now()
