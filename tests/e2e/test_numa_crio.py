"""The enforcer beside a real CRI-O as most nodes that have one (CRIO_BIN) are set: crun, systemd's cgroup driver, cgroup v2,
several NUMA nodes (emulated). crun has a container's processes in a cgroup of its own below the scope that systemd has.

One boot runs tests/e2e/guest/crio_node.py; each test here reads what it found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.guest import crio_node, shares
from tests.e2e.guest.world import TOUCHED
from tests.e2e.lab import vm
from tests.e2e.lab.runtimes import Installation, given_crios

pytestmark = [pytest.mark.thorough, pytest.mark.numavm, pytest.mark.runtime, pytest.mark.timeout(vm.TEST_S)]

ALL = "0-3"
"""CPUs and NUMA nodes: each has one."""

MODES = ["nri", "bypass"]
RELEASED = [*MODES, "bypass after nri"]


@dataclass(frozen=True, slots=True)
class Found:
    """pods: by mode and pod, what the kernel and the enforcer say of it. status: by mode, what `status` says. after: by what
    was asked for, where all were then. answers: by the same, the enforcer's own.
    """

    pods: dict[str, dict[str, dict[str, Any]]]
    status: dict[str, dict[str, Any]]
    after: dict[str, dict[str, str]]
    answers: dict[str, dict[str, Any]]


@pytest.fixture(scope="session", params=given_crios() or [None], ids=lambda each: each.name if each else "crio")
def of_crun(request: pytest.FixtureRequest) -> Installation:
    """A CRI-O whose programs are there; without one the emulated machine need not be built."""
    made: Installation | None = request.param
    if made is None:
        pytest.skip("CRIO_BIN names no folder with crio and pinns: Debian has none")
    return made


@pytest.fixture(scope="module")
def found(of_crun: Installation, numavm: Callable[..., vm.Result]) -> Found:
    programs = of_crun.programs
    assert programs is not None
    command = ["python3", "-m", crio_node.__name__]
    options = ("--qemu", *shares.options(crio_node.SHARED, programs))
    result = numavm("4x1", command, systemd=True, options=options)
    assert result.status == 0, result.failure()
    print(result.output)
    rows = result.records()
    pods: dict[str, dict[str, dict[str, Any]]] = {mode: {} for mode in MODES}
    for row in rows:
        if "pod" in row:
            pods[row["mode"]][row["pod"]] = row
    return Found(
        pods,
        {row["mode"]: row["status"] for row in rows if "status" in row},
        {row["after"]: row["where"] for row in rows if "after" in row},
        {row["after"]: row["answer"] for row in rows if "answer" in row},
    )


def members(where: dict[str, str]) -> dict[str, str]:
    return {pod: cpus for pod, cpus in where.items() if pod in crio_node.MEMBERS}


@pytest.mark.parametrize("mode", MODES)
def test_the_members_of_a_group_run_on_one_numa_node_with_their_memory(found: Found, mode: str) -> None:
    pods = found.pods[mode]
    homes = {pod: pods[pod]["allowed"]["cpus"] for pod in crio_node.MEMBERS}
    assert homes["shop-1"] == homes["shop-2"] != homes["bank-1"]
    for pod, home in homes.items():
        assert pods[pod]["allowed"]["mems"] == home, "the NUMA node of each CPU has its number"
        memory = pods[pod]["memory"]
        assert memory[home] >= TOUCHED
        assert memory[home] > 0.95 * sum(memory.values())


@pytest.mark.parametrize("mode", MODES)
def test_a_pod_that_has_not_opted_in_may_run_everywhere(found: Found, mode: str) -> None:
    assert found.pods[mode]["plain"]["allowed"] == {"cpus": ALL, "mems": ALL}


@pytest.mark.parametrize("mode", MODES)
def test_crun_has_the_processes_below_the_scope_that_systemd_has(found: Found, mode: str) -> None:
    for row in found.pods[mode].values():
        slice_, driver, container = row["path"].split(":")
        assert (slice_.endswith(".slice"), driver) == (True, "crio")
        assert row["folder"].endswith(f"{slice_}/crio-{container}.scope/container")


@pytest.mark.parametrize("mode", MODES)
def test_what_is_in_force_and_each_figure_is_read_there(found: Found, mode: str) -> None:
    for pod in crio_node.MEMBERS:
        row = found.pods[mode][pod]
        read = row["read"]
        assert (read["cpus"], read["mems"]) == (row["allowed"]["cpus"], row["allowed"]["mems"])
        assert read["pod"], pod
        assert read["cpu_seconds"] > 0
        assert sum(read["memory"].values()) >= sum(row["memory"].values())


@pytest.mark.parametrize("mode", MODES)
def test_status_has_each_members_memory_at_home_and_calls_all_well(found: Found, mode: str) -> None:
    told = found.status[mode]
    rows = {row["pod"].partition("/")[2]: row for row in told["memory"]}
    assert sorted(rows) == sorted(crio_node.MEMBERS)
    for pod, row in rows.items():
        assert row["home_mems"] == found.pods[mode][pod]["allowed"]["mems"]
        assert row["bytes"] >= TOUCHED
        assert row["away_bytes"] < 0.05 * row["bytes"]
    assert {row["state"] for row in told["containers"] if row["home_mems"]} == {"pinned"}


def test_a_resize_in_place_moves_no_member(found: Found) -> None:
    before = {pod: row["allowed"]["cpus"] for pod, row in found.pods["nri"].items()}
    assert found.after["nri: resize"] == before


@pytest.mark.parametrize("mode", RELEASED)
def test_a_release_opens_them_and_a_resume_pins_them_again(found: Found, mode: str) -> None:
    answer = found.answers[f"{mode}: release"]
    assert (answer["released"], answer["failed"], answer["error"]) == (len(crio_node.MEMBERS), [], "")
    assert set(members(found.after[f"{mode}: release"]).values()) == {ALL}
    pinned = members(found.after[f"{mode}: resume"])
    assert pinned["shop-1"] == pinned["shop-2"] != pinned["bank-1"]
    assert set(pinned.values()) <= set("0123")


@pytest.mark.parametrize("mode", MODES)
def test_systemd_leaves_cpusets_alone_when_it_is_reloaded_or_sets_properties(found: Found, mode: str) -> None:
    assert found.after[f"{mode}: systemctl"] == found.after[f"{mode}: resume"]
