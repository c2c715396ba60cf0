"""A pod goes to the NUMA node of its devices, known by the kubelet's word, by their numbers, or by both."""

import pytest

from enforcer.hook.agent import Agent
from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.facts.nominations import Nominations
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.world import container, member, two_numa_nodes

GPU = ("c", 10, 1)
"""A device whose number tells that it is near to NUMA node 1."""


@pytest.fixture
def agent() -> Agent:
    numbers = {GPU: 1}
    node = NodeFacts(
        two_numa_nodes(),
        CpuSet(),
        lambda _path: None,
        dict,
        device_node=lambda *number: numbers.get(number),
        limited=lambda _path, _pod: True,
    )
    return Agent(node, Nominations())


def told(**devices: list[str]) -> local.Devices:
    """By pod name; CONTAINER is app, or what follows two underscores."""
    rows = []
    for name, near in devices.items():
        pod, _, first = name.partition("__")
        rows.append(local.Devices.Row(namespace="shop", pod=pod, container=first or "app", numa_nodes=near))
    return local.Devices(rows=rows)


def home(agent: Agent, name: str, made: nri.Container | None = None, **more: str) -> str:
    of, made = member(name, **more), made or container(name)
    adjust, _ = agent.create_container(of, made)
    agent.post_create_container(of, made)
    return str(agent.occupancy.allocations[name].mems) if adjust is not None else ""


def reasons(agent: Agent) -> list[str]:
    return [f"{reason.what} {reason.number}: {reason.effect}" for reason in agent.records.take()[-1].reasons]


def test_a_pod_goes_where_its_devices_are(agent: Agent) -> None:
    agent.ledger.pod_devices.learn(told(a=["1"]))
    assert home(agent, "a") == "1"
    assert "devices 1: are near" in reasons(agent)


def test_a_pod_whose_devices_are_not_known_says_nothing_of_them(agent: Agent) -> None:
    agent.ledger.pod_devices.learn(told(other=["1"]))
    assert home(agent, "a") == "0"
    assert not [reason for reason in reasons(agent) if reason.startswith("devices")]


def test_a_nomination_that_was_made_without_knowing_the_devices_gives_way_to_them(agent: Agent) -> None:
    agent.expect(pb.Expect(pod="uid-a", namespace="shop", name="a", numa_nodes="0"))
    agent.ledger.pod_devices.learn(told(a=["1"]))
    assert home(agent, "a") == "1"
    assert "nomination NUMA node 0: does not hold: short of devices" in reasons(agent)


def test_devices_of_two_numa_nodes_cannot_both_be_near(agent: Agent) -> None:
    agent.ledger.pod_devices.learn(told(a=["0", "1", "1"]))
    assert home(agent, "a") == "1"
    assert "devices 1: are near none of these NUMA nodes" in reasons(agent)


def test_a_device_that_is_known_both_ways_counts_once(agent: Agent) -> None:
    first = container("a")
    first.linux.devices.add(type="c", major=10, minor=1)
    agent.ledger.pod_devices.learn(told(a=["1", "0", "0"]))
    assert home(agent, "a", first) == "0"


def test_a_device_that_only_its_number_tells_of_counts_too(agent: Agent) -> None:
    first = container("a")
    first.linux.devices.add(type="c", major=10, minor=1)
    agent.ledger.pod_devices.learn(told(a=[]))
    assert home(agent, "a", first) == "1"


def test_the_first_container_goes_where_the_pods_devices_are(agent: Agent) -> None:
    """A sidecar comes first, and the pod is placed as one."""
    agent.ledger.pod_devices.learn(told(a__worker=["1"]))
    assert home(agent, "a") == "1"


def test_a_container_that_is_placed_by_itself_has_its_own_devices(agent: Agent) -> None:
    agent.ledger.pod_devices.learn(told(a__worker=["1"]))
    assert home(agent, "a", scope="container") == "0"


def test_the_next_pod_of_that_name_has_none_of_the_devices(agent: Agent) -> None:
    agent.ledger.pod_devices.learn(told(a=["1"]))
    assert home(agent, "a") == "1"
    agent.stop_pod_sandbox(member("a"))
    assert home(agent, "a") == "0"


def test_a_pod_keeps_its_devices_when_the_last_one_of_its_name_is_removed(agent: Agent) -> None:
    last = member("a")
    last.uid = "uid-before"
    agent.ledger.pod_devices.learn(told(a=["1"]))
    agent.stop_pod_sandbox(last)
    assert home(agent, "a") == "1"


def test_what_is_told_replaces_what_was_known_and_bad_rows_are_left_out(agent: Agent) -> None:
    agent.ledger.pod_devices.learn(told(a=["1"]))
    agent.ledger.pod_devices.learn(told(a=["nonsense"], b=["0-1"]))
    assert agent.ledger.pod_devices.rows == {"shop/b/app": [str(NumaSet.of((0, 1)))]}
