"""Caches within NUMA nodes, CPUs and memory that come and go, and what monitoring tools read of it: on an emulated machine's
kernel.

One boot runs tests/e2e/guest/hardware.py; each test here reads what it found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from placement.model.cpuset import CpuSet
from tests.e2e.guest import hardware
from tests.e2e.lab import vm

pytestmark = [pytest.mark.numavm, pytest.mark.timeout(1500)]

NUMA_NODES = {"0": CpuSet.parse("0-7"), "1": CpuSet.parse("8-15")}


@pytest.fixture(scope="module")
def observed(numavm: Callable[..., vm.Result]) -> dict[str, Any]:
    """What the boot printed, by what it is about."""
    result = numavm("caches", ["python3", "-m", hardware.__name__], timeout_s=1200)
    assert result.status == 0, result.output[-20000:] + result.messages
    return {about: what for record in result.records() for about, what in record.items()}


def test_the_machine_has_two_caches_on_each_numa_node(observed: dict[str, Any]) -> None:
    caches = [CpuSet.parse(cache) for cache in observed["caches"]]
    assert [sum(cache <= cpus for cache in caches) for cpus in NUMA_NODES.values()] == [2, 2]


@pytest.mark.parametrize("group", sorted(set(hardware.CACHED.values())))
def test_members_of_a_group_that_want_a_cache_share_one(observed: dict[str, Any], group: str) -> None:
    places = {observed["cached"][name]["cpus"] for name, of in hardware.CACHED.items() if of == group}
    assert len(places) == 1
    assert places <= set(observed["caches"])


def test_groups_have_caches_of_their_own(observed: dict[str, Any]) -> None:
    assert len({place["cpus"] for place in observed["cached"].values()}) == len(set(hardware.CACHED.values()))


def test_podresources_tell_of_the_cpus_that_the_kernel_enforces(observed: dict[str, Any]) -> None:
    (container,) = observed["alone"]["listed"]
    allowed = observed["alone"]["allowed"]
    assert CpuSet.of(map(int, container["cpuIds"])) == CpuSet.parse(allowed["cpus"])
    assert len(container["cpuIds"]) == hardware.EXCLUSIVE


def test_an_exclusive_cpu_that_goes_offline_is_replaced(observed: dict[str, Any]) -> None:
    gone, now = observed["without_cpu"]["gone"], CpuSet.parse(observed["without_cpu"]["allowed"]["cpus"])
    assert gone in CpuSet.parse(observed["alone"]["allowed"]["cpus"])
    assert gone not in now
    assert now <= NUMA_NODES[observed["without_cpu"]["allowed"]["mems"]]
    assert len(now) == hardware.EXCLUSIVE


def test_memory_that_comes_online_is_used_by_who_needs_it(observed: dict[str, Any]) -> None:
    assert observed["mems_before"] == observed["spread"]["mems"] == "0-1"
    assert observed["spilled"]["mems"] == f"0-{hardware.PLUGGED}"


def test_nobody_is_left_on_memory_that_has_gone(observed: dict[str, Any]) -> None:
    assert observed["left"]["mems"] == "0-1"
