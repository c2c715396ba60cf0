"""Bypass mode on a machine with several NUMA nodes and cgroup v2 (emulated): what is written, and where the pages go.

tests/e2e/guest/bypass.py runs there, in one boot with others; each test here reads what it found.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.e2e.guest import bypass
from tests.e2e.lab import vm

pytestmark = [pytest.mark.thorough, pytest.mark.numavm, pytest.mark.timeout(vm.TEST_S)]

GUEST = bypass

CPUS = {"0": "0-1", "1": "2-3", "2": "4-5", "3": "6-7"}
MEMBERS = [pod for pod, group in bypass.GROUPS.items() if group]


class Observed:
    """What the boot printed, by pod."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.pinned = {record["pod"]: record for record in records if record.get("when") == "pinned"}
        self.released = {record["pod"]: record for record in records if record.get("when") == "released"}


@pytest.fixture(scope="module")
def observed(four_nodes: Callable[[ModuleType], vm.Result]) -> Observed:
    result = four_nodes(GUEST)
    assert result.status == 0, result.failure()
    return Observed(result.records())


@pytest.mark.parametrize("pod", MEMBERS)
def test_a_members_cgroup_has_its_numa_nodes_cpus_and_memory(observed: Observed, pod: str) -> None:
    seen = observed.pinned[pod]
    assert seen["cgroup"]["cpus"] == CPUS[seen["cgroup"]["mems"]]
    assert seen["allowed"] == seen["cgroup"]


def test_a_group_shares_a_numa_node_and_another_group_has_the_other(observed: Observed) -> None:
    homes = {pod: observed.pinned[pod]["cgroup"]["mems"] for pod in MEMBERS}
    assert homes["cart"] == homes["checkout"] != homes["ledger"]


@pytest.mark.parametrize("pod", MEMBERS)
def test_memory_that_was_touched_before_the_pin_has_moved_along(observed: Observed, pod: str) -> None:
    seen = observed.pinned[pod]
    pages = dict(seen["numa_stat"])
    assert pages.pop(seen["cgroup"]["mems"]) >= bypass.TOUCHED
    assert sum(pages.values()) <= bypass.STRAY


def test_a_pod_that_has_not_opted_in_is_never_touched(observed: Observed) -> None:
    assert observed.pinned["plain"]["cgroup"] == {"cpus": "", "mems": ""}


@pytest.mark.parametrize("pod", list(bypass.GROUPS))
def test_release_gives_every_container_the_whole_machine(observed: Observed, pod: str) -> None:
    assert observed.released[pod]["allowed"] == {"cpus": "0-7", "mems": "0-4"}
