"""What the observer is told of the node's containers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from enforcer.hook.facts.local_containers import LocalContainers
from numakin.wire import nri_pb2 as nri
from tests.enforcer.hook.world import container, member, pod
from tests.enforcer.nri.lives import RUNTIMES, life, of


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


def on_crio(name: str) -> nri.PodSandbox:
    """A pod as CRI-O 1.37 sends it: it lists a network namespace for each, and pins the host's own for hostNetwork."""
    sandbox = member(name)
    for kind in ("ipc", "uts", "mount", "pid"):
        sandbox.linux.namespaces.add(type=kind)
    sandbox.linux.namespaces.add(type="network", path=f"/var/run/netns/{name}")
    sandbox.linux.cgroup_parent, sandbox.linux.cgroups_path = "/kubepods/podx", f"/kubepods/podx/crio-{name}"
    return sandbox


def host_network(residents: LocalContainers, name: str) -> bool | None:
    told = residents.now()[name]
    return told.host_network if told.HasField("host_network") else None


def test_a_pod_without_a_network_namespace_is_in_the_nodes() -> None:
    residents = LocalContainers()
    residents.met(member("host"), container("host"))
    assert host_network(residents, "host") is True


def test_one_that_is_listed_says_nothing_as_it_may_be_the_nodes_own() -> None:
    residents = LocalContainers()
    residents.met(on_crio("a"), container("a"))
    assert host_network(residents, "a") is None


@pytest.mark.parametrize(
    ("name", "pod", "known"),
    [(name, pod, known) for name in RUNTIMES for pod, known in (("cart", True), ("own", None), ("exposed", None))],
)
def test_as_real_runtimes_tell_it_the_nodes_network_is_known_from_the_container(name, pod, known) -> None:
    """cart is in the node's network, own has one of its own, and so has exposed, which a port of the node leads to."""
    told = of(life(name), "PostStartContainer", pod)
    residents = LocalContainers()
    residents.met(told.pod, told.container)
    assert host_network(residents, told.container.id) is known


@pytest.mark.parametrize("spec", [True, False])
@pytest.mark.parametrize("sandbox", [member, on_crio], ids=["none is listed", "one is listed"])
def test_the_pods_spec_decides_where_it_is_known(sandbox: Callable[[str], nri.PodSandbox], *, spec: bool) -> None:
    known = {"uid-a": spec}
    residents = LocalContainers(host_network=known.get)
    for name in ("a", "b"):
        residents.met(sandbox(name), container(name))
    assert host_network(residents, "a") is spec
    assert host_network(residents, "b") is not False


def test_a_spec_that_is_known_later_is_told_again() -> None:
    known: dict[str, bool] = {}
    residents = LocalContainers(host_network=known.get)
    residents.met(on_crio("a"), container("a"))
    residents.met(on_crio("b"), container("b"))
    residents.changes()
    known["uid-a"] = True
    residents.learned("uid-a", "")
    (changed,), gone = residents.changes()
    assert (changed.id, changed.host_network, gone) == ("a", True, [])
    residents.learned("uid-a", "shop/Deployment/a")
    assert residents.now()["a"].workload == "shop/Deployment/a"


def test_who_is_gone_is_told_no_more_whether_it_was_told_before_or_not() -> None:
    residents = LocalContainers()
    for name in ("a", "b"):
        residents.met(member(name), container(name))
    residents.gone("a")
    assert set(residents.now()) == {"b"}
    residents.gone("b")
    assert not residents.now()


def test_nothing_is_kept_of_those_that_came_and_went_while_nobody_asked() -> None:
    residents = LocalContainers()
    for number in range(3):
        residents.met(pod("a"), container(str(number)))
        residents.now()
        residents.gone(str(number))
    assert not residents._changed
    assert residents.changes() == ([], [])
