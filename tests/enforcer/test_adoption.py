"""Whose work a running container's cpuset is taken for."""

from __future__ import annotations

import pytest

from enforcer.adoption import Pinned, owner_of
from enforcer.pods import MARK, Claim
from placement.cpuset import CpuSet, NumaSet
from placement.occupancy import Occupancy
from placement.wishes import Cpus
from proto import nri_pb2 as nri
from tests.machines import SMALL
from tests.placement.asking import asks, filled


def container(*, marked: bool) -> nri.Container:
    return nri.Container(id="a-main", name="main", annotations={MARK: "cpus=0-3 mems=0"} if marked else {})


def owner(had: str, mems: str = "0", *, marked: bool, occupancy: Occupancy | None = None, **wishes):
    now = CpuSet.parse(had), NumaSet.parse(mems)
    return owner_of(SMALL, occupancy or Occupancy(), asks("a", 2, **wishes), container(marked=marked), now)


@pytest.mark.parametrize(
    ("cpus", "marked", "homes"),
    [
        ("0-3", True, "0"),
        ("0-3", False, "0"),
        ("1-2", True, "0"),
        ("4-7", True, "1"),
    ],
    ids=["a pool, marked", "a pool, not marked", "a part, marked", "another pool"],
)
def test_what_we_left_stays(cpus, marked, homes) -> None:
    found = owner(cpus, homes, marked=marked)
    assert isinstance(found, Pinned)
    assert (str(found.homes), str(found.holding.cpus), str(found.holding.mems)) == (homes, cpus, homes)


@pytest.mark.parametrize(
    ("cpus", "marked"),
    [("", True), ("0-7", False), ("0-7", True), ("6-9", True)],
    ids=["none told", "never pinned", "given back", "not of this machine"],
)
def test_what_has_no_place_is_still_to_be_placed(cpus, marked) -> None:
    assert owner(cpus, marked=marked) is None


def test_a_cpuset_that_is_no_pool_and_has_no_mark_is_somebody_elses() -> None:
    assert owner("1-2", marked=False) == Claim("1-2", "0")


def test_own_cpus_are_found_again_unless_somebody_has_them_by_now() -> None:
    found = owner("0-1", marked=True, cpus=Cpus.EXCLUSIVE)
    assert isinstance(found, Pinned)
    assert str(found.holding.exclusive) == "0-1"
    others = filled(SMALL, asks("b", 2, cpus=Cpus.EXCLUSIVE))
    assert owner("0-1", marked=True, cpus=Cpus.EXCLUSIVE, occupancy=others) is None


def test_mems_that_leave_all_open_are_no_binding() -> None:
    found = owner("0-3", "0-1", marked=True)
    assert isinstance(found, Pinned)
    assert found.holding.mems == NumaSet()
