"""Pods that ask for no group by name find their kin by their traffic: real containers on an emulated NUMA machine.

tests/e2e/guest/auto_group.py runs there, in one boot with others; each test here reads what it found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.e2e.guest import auto_group
from tests.e2e.guest.auto_group import PAIRS, REPLICAS, Pair, pod_name
from tests.e2e.guest.talkers import NRI_SOCKET
from tests.e2e.lab import vm

pytestmark = [pytest.mark.thorough, pytest.mark.numavm, pytest.mark.timeout(vm.TEST_S)]

GUEST = auto_group

CPUS = {0: "0-1", 1: "2-3", 2: "4-5", 3: "6-7"}
NODE_OF = {cpus: node for node, cpus in CPUS.items()}

pairs = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.client}-{pair.server}")


class Observed:
    """What the boot printed. allowed: pod -> CPUs and mems by the kernel. joined: the CPUs of a replica's sibling when it
    had come, and of its kin before and after. windows: number -> what was seen in it. planned: moves that were told and
    not made; meanwhile: where the pairs were then; proven: what became of those that were made.
    """

    def __init__(self, records: list[dict[str, Any]]) -> None:
        output = {
            key: value for record in records if not {"pod", "joined"} & record.keys() for key, value in record.items()
        }
        self.allowed: dict[str, dict[str, str]] = {
            record["pod"]: record["allowed"] for record in records if "pod" in record
        }
        self.joined: dict[str, dict[str, Any]] = {record["joined"]: record for record in records if "joined" in record}
        self.doctor: list[dict[str, str]] = output["doctor"]
        self.doctors_status: int = output["status"]
        self.traffic: dict[str, Any] = output["traffic"]
        self.windows: dict[int, dict[str, Any]] = {int(number): entry for number, entry in output["windows"].items()}
        self.talking_since: int = output["talking_since"]
        self.uids: dict[str, str] = output["uids"]
        self.gathered: dict[str, dict[str, str]] = output["gathered"]
        self.planned: list[dict[str, str]] = output["planned"]
        self.meanwhile: dict[str, dict[str, str]] = output["meanwhile"]
        self.moved: list[str] = output["moved"]
        self.proven: list[str] = output["proven"]
        self.memory: dict[str, dict[str, Any]] = {row["pod"]: row for row in output["memory"]}
        self.metric: dict[str, float] = output["metric"]

    def home(self, deployment: str, replica: int = 1) -> int | None:
        """The NUMA node that all of a replica's CPUs belonged to when it came."""
        return NODE_OF.get(self.allowed[pod_name(deployment, replica)]["cpus"])


@pytest.fixture(scope="module")
def observed(four_nodes: Callable[[ModuleType], vm.Result]) -> Observed:
    result = four_nodes(GUEST)
    assert result.status == 0, result.failure()
    return Observed(result.records())


def test_strangers_are_started_on_numa_nodes_of_their_own(observed: Observed) -> None:
    homes = {observed.home(deployment) for pair in PAIRS for deployment in (pair.server, pair.client)}
    assert homes == set(CPUS)


@pairs
def test_those_that_talk_are_known_within_two_windows(observed: Observed, pair: Pair) -> None:
    server, client = (observed.uids[pod_name(entry, 1)] for entry in (pair.server, pair.client))
    for way in ((server, client), (client, server)):
        seen = [
            number
            for number, window in observed.windows.items()
            if any(tuple(flow[:2]) == way for flow in window["flows"])
        ]
        assert min(seen) <= observed.talking_since + auto_group.WINDOWS_TO_LEARN


@pairs
def test_the_enforcer_shows_both_directions_with_the_heavier_one_first(observed: Observed, pair: Pair) -> None:
    server, client = (f"default/{pod_name(entry, 1)}" for entry in (pair.server, pair.client))
    tcp = [edge for edge in observed.traffic["edges"] if edge["kind"] == "tcp"]
    between = [entry for entry in tcp if {entry["source"], entry["target"]} == {server, client}]
    assert [(entry["source"], entry["target"]) for entry in between] == [(server, client), (client, server)]
    assert between[0]["bytes_per_s"] > between[1]["bytes_per_s"] > 0


def test_with_the_probes_always_on_no_count_is_scaled(observed: Observed) -> None:
    """But for the moment between the first window's begin and the probes being attached."""
    assert [window["scale"] for window in observed.windows.values()] == [pytest.approx(1, rel=0.05)] * len(
        observed.windows
    )


def test_no_tcp_is_seen_between_those_that_do_not_talk(observed: Observed) -> None:
    kin = {frozenset(f"default/{pod_name(entry, 1)}" for entry in (pair.server, pair.client)) for pair in PAIRS}
    talking = {
        frozenset((edge["source"], edge["target"]))
        for edge in observed.traffic["edges"]
        if edge["kind"] in ("tcp", "udp")
    }
    assert talking == kin


@pytest.mark.parametrize("deployment", REPLICAS)
def test_a_new_replica_joins_those_that_its_siblings_talk_to(observed: Observed, deployment: str) -> None:
    """Where they are or, by the plan, are to meet; and neither its siblings elsewhere nor an emptier NUMA node."""
    name = pod_name(deployment, 2)
    joined, home = observed.joined[name], observed.home(deployment, 2)
    meeting = observed.gathered[REPLICAS[deployment]]["cpus"]
    assert home in {NODE_OF[cpus] for cpus in (*joined["kin"], meeting)}, joined["log"]
    assert observed.allowed[name]["mems"] == str(home)
    moved = set(joined["siblings"]) <= set(joined["kin"])
    assert moved or home == NODE_OF[meeting] or observed.home(deployment) != home


def test_a_dry_run_tells_moves_to_the_kin_and_makes_none(observed: Observed) -> None:
    kin = {one: other for pair in PAIRS for one, other in ((pair.server, pair.client), (pair.client, pair.server))}
    told = [(move["pod"].removeprefix("default/"), move["source"], move["target"]) for move in observed.planned]
    ways = {(pod_name(one, 1), *(f"NUMA node {observed.home(end)}" for end in (one, kin[one]))) for one in kin}
    assert set(told) <= ways
    assert len(told) >= len(PAIRS)
    assert observed.meanwhile == {entry: observed.allowed[pod_name(entry, 1)] for entry in kin}


@pairs
def test_a_running_pair_is_moved_together_and_its_pages_stay(observed: Observed, pair: Pair) -> None:
    """Who moved may have memory from where it was and from where it is."""
    places = [observed.gathered[entry] for entry in (pair.server, pair.client)]
    assert places[0]["cpus"] == places[1]["cpus"]
    assert places[0]["cpus"] in CPUS.values()
    homes = {next(node for node, cpus in CPUS.items() if cpus == place["cpus"]) for place in places}
    assert all({str(home) for home in homes} <= set(re.split("[,-]", place["mems"])) for place in places)
    assert {len(re.split("[,-]", place["mems"])) for place in places} == {1, 2}, (places, observed.moved)


@pairs
def test_what_stayed_behind_is_told(observed: Observed, pair: Pair) -> None:
    """By pod: of whoever moved, and of nobody else. The guest's kernel may bring some of it along meanwhile."""
    for deployment in (pair.server, pair.client):
        row = observed.memory[f"default/{pod_name(deployment, 1)}"]
        place = observed.gathered[deployment]
        assert row["home_mems"] == str(NODE_OF[place["cpus"]])
        moved = place["mems"] != row["home_mems"]
        share = row["away_bytes"] / row["bytes"]
        assert share > 0.2 if moved else share < 0.1, row


def test_the_metric_has_the_sum_of_all_members(observed: Observed) -> None:
    """Within what they have touched between the two looks."""
    away = sum(row["away_bytes"] for row in observed.memory.values())
    assert observed.metric["remote"] == pytest.approx(away, rel=0.2)
    near = sum(row["bytes"] - row["away_bytes"] for row in observed.memory.values())
    assert observed.metric["local"] == pytest.approx(near, rel=0.2)


def test_no_more_was_moved_than_that_took(observed: Observed) -> None:
    assert len(observed.moved) == len(PAIRS), observed.moved
    assert all("of the traffic here comes home" in move for move in observed.moved), observed.moved


def test_each_move_is_looked_at_afterwards(observed: Observed) -> None:
    assert len(observed.proven) == len(observed.moved)
    assert all(why.endswith("the move helped") for why in observed.proven), observed.proven


def test_the_doctor_says_what_is_in_force_here(observed: Observed) -> None:
    output = {(entry["topic"], entry["grade"], entry["text"]) for entry in observed.doctor}
    assert ("traffic", "good", "seen by cgroup_skb") in output
    assert ("traffic", "good", "unix sockets are seen") in output
    assert ("traffic", "good", "wake-ups are seen") in output
    assert ("NUMA", "good", "4 NUMA nodes with 2 CPUs each") in output
    assert any(topic == "memory" and text.startswith("the kernel's NUMA balancing is on") for topic, _, text in output)
    assert ("NRI", "good", f"the container runtime listens at {NRI_SOCKET}") in output
    assert observed.doctors_status == 0
    assert observed.traffic["collector"] == "cgroup_skb"
