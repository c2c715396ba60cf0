"""How many of a group may be moved at a time, and which steps that leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.plan.group_limit import GroupLimit, NotToBeTaken
from numakin.placement.state.occupancy import Occupancy
from tests.numakin.placement.plan.seated import seated


def grouped(**groups: str) -> Occupancy:
    """Members of a group are "abc"; each reservation's key is its letter."""
    occupancy = Occupancy()
    for group, members in groups.items():
        for key in members:
            (reservation,) = seated({key: "0"})[0].reservations.values()
            occupancy = occupancy.with_reservation(replace(reservation, group="" if group == "none" else group))
    return occupancy


@pytest.mark.parametrize(
    ("share", "moved", "members", "allowed"),
    [
        (0.5, "", "ab", True),
        (0.5, "", "abc", True),
        (0.5, "", "abcd", False),
        (0.5, "c", "ab", True),
        (0.5, "cd", "ab", False),
        (0.5, "xy", "ab", True),
        (0.1, "", "a", True),
        (0.1, "", "ab", False),
        (0.1, "b", "a", False),
        (1.0, "", "abcde", True),
        (0.5, "", "abcx", True),
        (0.5, "abc", "x", True),
    ],
)
def test_no_more_than_its_share_rounded_up(share: float, moved: str, members: str, allowed: bool) -> None:  # noqa: FBT001
    limit = GroupLimit.of(grouped(shop="abcde", other="xyz"), share, moved)
    assert limit.allows(members) is allowed


def test_who_has_neither_group_nor_workload_is_not_limited() -> None:
    assert GroupLimit.of(grouped(none="abc"), 0.1, "abc").allows("abc")


def test_who_names_no_group_counts_with_the_replicas_of_its_workload() -> None:
    occupancy = grouped(none="abcd")
    workloads = {"a": "ns/Deployment/web", "b": "ns/Deployment/web", "c": "ns/Deployment/db"}
    for key, workload in workloads.items():
        occupancy = occupancy.changed({key: replace(occupancy.reservations[key], workload=workload)})
    limit = GroupLimit.of(occupancy, 0.5, "")
    assert not limit.allows("ab")
    assert limit.allows("acd")


def test_who_is_gone_counts_no_more() -> None:
    assert GroupLimit.of(grouped(shop="ab"), 0.5, ["gone"]).allows("a")


def test_what_has_moved_since_counts_too() -> None:
    limit = GroupLimit.of(grouped(shop="abcd"), 0.5, "")
    assert limit.after("a").allows("b")
    assert not limit.after("ab").allows("c")


def test_a_step_is_not_to_be_taken_for_any_of_three_reasons() -> None:
    there, back = NumaSet.parse("1"), NumaSet.parse("0")

    def step(keys: str, target: NumaSet = there) -> frozenset[tuple[str, NumaSet, CpuSet]]:
        return frozenset((key, target, CpuSet()) for key in keys)

    refused = NotToBeTaken([step("a")], step("b", back), GroupLimit.of(grouped(shop="abcd"), 0.5, ""))
    assert step("a") in refused
    assert step("bc", back) in refused
    assert step("bcd") in refused
    assert step("b") not in refused
    assert step("ab") not in refused
