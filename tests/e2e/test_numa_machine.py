"""The whole path on a machine with several NUMA nodes (emulated): scored, bound, created, pinned where predicted; and
what becomes of that when a CPU goes offline and comes back, and when a device's memory comes and goes.

tests/e2e/guest/main_path.py runs there, in one boot with others; each test here reads what it found.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from numakin.placement.model.cpuset import CpuSet, NumaSet
from tests.e2e.guest import main_path, world
from tests.e2e.lab import vm

pytestmark = [pytest.mark.thorough, pytest.mark.numavm, pytest.mark.timeout(vm.TEST_S)]

GUEST = main_path

CPUS = {0: "0-1", 1: "2-3", 2: "4-5", 3: "6-7"}
MEMORY_ONLY = 4
NEAREST = {0: 1, 1: 0, 2: 3, 3: 2}
GROUPS = ("shop", "bank", "wide")
MEMBERS = [option.name for option in main_path.WISHES if option.group]


class Observed:
    """What the boot printed. homes: member -> the NUMA node that all of its CPUs belong to. before, gone, back: all that
    was known before the CPU of the member with exclusive ones went offline, then, and when it was back. without, plugged,
    unplugged: before a device's memory came, then, and when it was gone.
    """

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.machine: dict[str, Any] = records[0]["machine"]
        self.pods: dict[str, dict[str, Any]] = {record["pod"]: record for record in records if "pod" in record}
        changes = {key: value for record in records[1:] if "pod" not in record for key, value in record.items()}
        self.cpu: int = changes["cpu"]
        self.before, self.gone, self.back = (changes[when] for when in ("before", "gone", "back"))
        self.without, self.plugged, self.unplugged = (changes[when] for when in ("without", "plugged", "unplugged"))
        node_of = {cpus: node for node, cpus in CPUS.items()}
        self.homes = {name: node_of.get(self.pods[name]["allowed"]["cpus"]) for name in MEMBERS}

    def homes_of(self, group: str) -> list[int | None]:
        """In the order of creation."""
        return [self.homes[option.name] for option in main_path.WISHES if option.group == group]


@pytest.fixture(scope="module")
def observed(four_nodes: Callable[[ModuleType], vm.Result]) -> Observed:
    result = four_nodes(GUEST)
    assert result.status == 0, result.failure()
    return Observed(result.records())


def test_the_machine_is_what_it_is_meant_to_be(observed: Observed) -> None:
    assert {int(node): cpus for node, cpus in observed.machine["cpus"].items()} == {
        **CPUS,
        MEMORY_ONLY: "",
        main_path.DEVICE: "",
    }
    assert observed.machine["has_memory"] == "0-4"
    assert observed.machine["distances"]["0"][1] != observed.machine["distances"]["1"][0], "distances are asymmetric"


@pytest.mark.parametrize("group", ["shop", "bank"])
def test_members_of_a_group_run_on_the_cpus_of_one_numa_node(observed: Observed, group: str) -> None:
    homes = observed.homes_of(group)
    assert homes[0] in CPUS
    assert len(set(homes)) == 1


def test_groups_do_not_crowd_one_numa_node(observed: Observed) -> None:
    assert len({observed.homes_of(group)[0] for group in GROUPS}) == len(GROUPS)


def test_a_member_that_finds_its_groups_numa_node_full_goes_to_the_nearest(observed: Observed) -> None:
    first, second, third = observed.homes_of("wide")
    assert first is not None
    assert second == first
    assert third == NEAREST[first]


@pytest.mark.parametrize("pod", MEMBERS)
def test_a_members_memory_is_on_its_numa_node(observed: Observed, pod: str) -> None:
    home, seen = observed.homes[pod], observed.pods[pod]
    assert home is not None
    assert seen["allowed"]["mems"] == str(home)
    for witness in ("numa_maps", "numa_stat"):
        pages = {int(node): size for node, size in seen[witness].items() if size}
        assert set(pages) == {home}, witness
        assert pages[home] >= world.TOUCHED, witness


@pytest.mark.parametrize("pod", MEMBERS)
def test_the_cgroup_says_what_is_in_force(observed: Observed, pod: str) -> None:
    assert observed.pods[pod]["cgroup"] == observed.pods[pod]["allowed"]


@pytest.mark.parametrize("pod", MEMBERS)
def test_the_extenders_prediction_is_what_happened(observed: Observed, pod: str) -> None:
    seen = observed.pods[pod]
    predicted, happened = seen["predicted"], seen["happened"][-1]
    assert predicted["numa_nodes"] == str(observed.homes[pod]) == happened["numa_nodes"]
    assert [container["cpus"] for container in predicted["containers"]] == [seen["allowed"]["cpus"]]
    assert [container["mems"] for container in predicted["containers"]] == [seen["allowed"]["mems"]]
    assert happened["nomination"] == "kept"


@pytest.mark.parametrize("pod", MEMBERS)
def test_a_node_without_an_enforcer_scores_0_for_a_member(observed: Observed, pod: str) -> None:
    scores = observed.pods[pod]["scores"]
    assert scores[world.UNKNOWN_NODE] == 0
    assert scores[world.NODE] > 0


def test_a_pod_that_has_not_opted_in_is_never_touched(observed: Observed) -> None:
    plain = observed.pods["plain"]
    assert plain["cgroup"] == {"cpus": "", "mems": ""}
    assert CpuSet.parse(plain["allowed"]["cpus"]) == CpuSet.parse("0-7")
    assert plain["allowed"]["mems"] == "0-4"
    assert plain["scores"] == {}, "no node is preferred to another"
    assert plain["happened"] == []


def cpus(now: dict[str, Any], pod: str) -> CpuSet:
    """Where the kernel lets it run."""
    return CpuSet.parse(now["allowed"][pod]["cpus"])


def others(now: dict[str, Any]) -> CpuSet:
    """The CPUs of all members but the one with exclusive ones."""
    names = set(now["allowed"]) - {main_path.ALONE.name, "plain"}
    return CpuSet.of(cpu for name in names for cpu in cpus(now, name))


@pytest.mark.parametrize("when", ["before", "gone", "back"])
def test_an_exclusive_cpu_is_nobody_elses_whatever_the_machine_does(observed: Observed, when: str) -> None:
    now = getattr(observed, when)
    own = cpus(now, main_path.ALONE.name)
    assert len(own) == 1
    assert own.isdisjoint(others(now))


@pytest.mark.parametrize("when", ["before", "gone", "back"])
def test_podresources_tells_what_is_in_force(observed: Observed, when: str) -> None:
    """Of shared CPUs nothing, as the kubelet's own."""
    now = getattr(observed, when)
    for name in now["allowed"]:
        told, alone = now["podresources"][name], name == main_path.ALONE.name
        assert told["cpus"] == (str(cpus(now, name)) if alone else "")
        mems = now["allowed"][name]["mems"]
        assert told["memory"] == ({} if name == "plain" else {mems: world.MEMORY_LIMIT})


def test_a_member_whose_exclusive_cpu_went_offline_has_another(observed: Observed) -> None:
    assert observed.cpu in cpus(observed.before, main_path.ALONE.name)
    assert observed.cpu not in cpus(observed.gone, main_path.ALONE.name)


@pytest.mark.parametrize(("when", "there"), [("before", True), ("gone", False), ("back", True)])
def test_the_extender_has_the_machine_as_it_is(observed: Observed, when: str, *, there: bool) -> None:
    told = CpuSet.parse(",".join(getattr(observed, when)["extender"]))
    assert told == CpuSet.parse("0-7") - (CpuSet() if there else CpuSet.of([observed.cpu]))


def test_a_cpu_that_is_back_is_used_again(observed: Observed) -> None:
    assert observed.cpu not in others(observed.gone)
    assert observed.cpu in others(observed.back) | cpus(observed.back, main_path.ALONE.name)


@pytest.mark.parametrize(("when", "there"), [("without", False), ("plugged", True), ("unplugged", False)])
def test_the_extender_has_a_devices_memory_while_it_is_there(observed: Observed, when: str, *, there: bool) -> None:
    assert bool(getattr(observed, when)["memory"][str(main_path.DEVICE)]) is there


def test_a_member_that_may_use_more_than_its_numa_node_has_gets_the_devices_memory_too(observed: Observed) -> None:
    """Left open without it: what it may use is not covered, and a binding could kill."""
    before, after = (observed.pods[request.name] for request in main_path.LARGE)
    assert before["cgroup"]["mems"] == ""
    bound, home = NumaSet.parse(after["cgroup"]["mems"]), CpuSet.parse(after["allowed"]["cpus"])
    (numa_node,) = (node for node, cpus in CPUS.items() if home <= CpuSet.parse(cpus))
    assert {numa_node, main_path.DEVICE} <= set(bound)
    assert set(bound).isdisjoint(set(CPUS) - {numa_node}), "no other NUMA node's that has CPUs"


def test_whoever_is_not_bound_has_a_devices_memory_as_the_kernel_gives_it(observed: Observed) -> None:
    mems = [getattr(observed, when)["allowed"]["plain"]["mems"] for when in ("without", "plugged", "unplugged")]
    assert mems == ["0-4", "0-5", "0-4"]


@pytest.mark.parametrize("said", ["allowed", "cgroup"])
def test_nobody_stays_on_memory_that_is_gone(observed: Observed, said: str) -> None:
    for name, cpuset in observed.unplugged[said].items():
        assert main_path.DEVICE not in NumaSet.parse(cpuset["mems"]), name
