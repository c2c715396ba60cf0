"""Pods that ask for no group by name find their kin by their traffic: real containers on an emulated NUMA machine.

One boot runs tests/e2e/guest/auto_group.py; each test here reads what it found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.guest import auto_group
from tests.e2e.guest.auto_group import PAIRS, REPLICAS, Pair, pod_name
from tests.e2e.lab import vm

pytestmark = [pytest.mark.numavm, pytest.mark.timeout(1500)]

CPUS = {0: "0-1", 1: "2-3", 2: "4-5", 3: "6-7"}
NODE_OF = {cpus: node for node, cpus in CPUS.items()}

pairs = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.client}-{pair.server}")


class Found:
    """What the boot printed. allowed: pod -> CPUs and mems by the kernel. joined: those of a replica's siblings and kin
    when it had come: on a slow machine some have been moved by then. windows: number -> what was seen in it.
    """

    def __init__(self, records: list[dict[str, Any]]) -> None:
        said = {
            key: value for record in records if not {"pod", "joined"} & record.keys() for key, value in record.items()
        }
        self.allowed: dict[str, dict[str, str]] = {
            record["pod"]: record["allowed"] for record in records if "pod" in record
        }
        self.joined: dict[str, dict[str, Any]] = {record["joined"]: record for record in records if "joined" in record}
        self.doctor: list[dict[str, str]] = said["doctor"]
        self.doctors_status: int = said["status"]
        self.traffic: dict[str, Any] = said["traffic"]
        self.windows: dict[int, dict[str, Any]] = {int(number): one for number, one in said["windows"].items()}
        self.talking_since: int = said["talking_since"]
        self.uids: dict[str, str] = said["uids"]
        self.gathered: dict[str, dict[str, str]] = said["gathered"]
        self.moved: list[str] = said["moved"]

    def home(self, deployment: str, replica: int = 1) -> int | None:
        """The NUMA node that all of a replica's CPUs belonged to when it came."""
        return NODE_OF.get(self.allowed[pod_name(deployment, replica)]["cpus"])


@pytest.fixture(scope="module")
def found(numavm: Callable[..., vm.Result]) -> Found:
    result = numavm("4n", ["python3", "-m", auto_group.__name__], timeout_s=1200)
    assert result.status == 0, result.output[-20000:] + result.messages
    return Found(result.records())


def test_strangers_are_started_on_numa_nodes_of_their_own(found: Found) -> None:
    homes = {found.home(deployment) for pair in PAIRS for deployment in (pair.server, pair.client)}
    assert homes == set(CPUS)


@pairs
def test_those_that_talk_are_known_within_two_windows(found: Found, pair: Pair) -> None:
    server, client = (found.uids[pod_name(one, 1)] for one in (pair.server, pair.client))
    for way in ((server, client), (client, server)):
        seen = [
            number
            for number, window in found.windows.items()
            if any(tuple(flow[:2]) == way for flow in window["flows"])
        ]
        assert min(seen) <= found.talking_since + auto_group.WINDOWS_TO_LEARN


@pairs
def test_the_enforcer_shows_both_directions_with_the_heavier_one_first(found: Found, pair: Pair) -> None:
    server, client = (f"default/{pod_name(one, 1)}" for one in (pair.server, pair.client))
    tcp = [one for one in found.traffic["edges"] if one["kind"] == "tcp"]
    between = [one for one in tcp if {one["source"], one["target"]} == {server, client}]
    assert [(one["source"], one["target"]) for one in between] == [(server, client), (client, server)]
    assert between[0]["bytes_per_s"] > between[1]["bytes_per_s"] > 0


def test_with_the_probes_always_on_no_count_is_scaled(found: Found) -> None:
    """But for the moment between the first window's begin and the probes being attached."""
    assert [window["scale"] for window in found.windows.values()] == [pytest.approx(1, rel=0.05)] * len(found.windows)


def test_no_tcp_is_seen_between_those_that_do_not_talk(found: Found) -> None:
    kin = {frozenset(f"default/{pod_name(one, 1)}" for one in (pair.server, pair.client)) for pair in PAIRS}
    talking = {
        frozenset((one["source"], one["target"])) for one in found.traffic["edges"] if one["kind"] in ("tcp", "udp")
    }
    assert talking == kin


@pytest.mark.parametrize("deployment", REPLICAS)
def test_a_new_replica_joins_those_that_its_siblings_talk_to(found: Found, deployment: str) -> None:
    """And neither its siblings, while they are elsewhere, nor an emptier NUMA node."""
    name = pod_name(deployment, 2)
    home = NODE_OF[found.joined[name]["kin"]["cpus"]]
    assert found.home(deployment, 2) == home
    assert found.allowed[name]["mems"] == str(home)
    moved = found.joined[name]["siblings"]["cpus"] == found.joined[name]["kin"]["cpus"]
    assert moved or found.home(deployment) != home


@pairs
def test_a_running_pair_is_moved_together_and_its_pages_stay(found: Found, pair: Pair) -> None:
    """Who moved may have memory from where it was and from where it is."""
    places = [found.gathered[one] for one in (pair.server, pair.client)]
    assert places[0]["cpus"] == places[1]["cpus"]
    assert places[0]["cpus"] in CPUS.values()
    homes = {next(node for node, cpus in CPUS.items() if cpus == place["cpus"]) for place in places}
    assert all({str(home) for home in homes} <= set(re.split("[,-]", place["mems"])) for place in places)
    assert {len(re.split("[,-]", place["mems"])) for place in places} == {1, 2}


def test_no_more_was_moved_than_that_took(found: Found) -> None:
    assert len(found.moved) == len(PAIRS)
    assert all("of the traffic here comes home" in why for why in found.moved)


def test_the_doctor_says_what_is_in_force_here(found: Found) -> None:
    said = {(one["topic"], one["grade"], one["text"]) for one in found.doctor}
    assert ("traffic", "good", "seen by cgroup_skb") in said
    assert ("traffic", "good", "unix sockets are seen") in said
    assert ("traffic", "good", "wake-ups are seen") in said
    assert ("NUMA", "good", "4 NUMA nodes with 2 CPUs each") in said
    assert ("NRI", "good", f"the container runtime listens at {auto_group.NRI_SOCKET}") in said
    assert found.doctors_status == 0
    assert found.traffic["collector"] == "cgroup_skb"
