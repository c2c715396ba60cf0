"""Whose work a running container's cpuset is taken for."""

from __future__ import annotations

import pytest

from enforcer.hook.facts.pods import MARK, Claim
from enforcer.hook.ownership.adoption import Pinned, known_of, owner_of
from enforcer.hook.ownership.checkpoint import Grant, Past
from placement.model.cpuset import CpuSet, NumaSet
from placement.optin.options import Cpus
from placement.state.occupancy import Occupancy
from proto import nri_pb2 as nri
from tests.machines import SMALL
from tests.placement.asking import asks, filled


def owner(
    had: str,
    mems: str = "0",
    *,
    mark: str = "",
    written: Grant | None = None,
    exclusive: str = "",
    occupancy: Occupancy | None = None,
    **wishes,
):
    """mark: an annotation that it carries from its creation. written, exclusive: what was written down of it, and of
    others' exclusive CPUs.
    """
    asked = asks("a", 2, **wishes)
    others = Grant("other", cpus=CpuSet.parse(exclusive), exclusive=CpuSet.parse(exclusive))
    past = Past({"other-main": others} | ({asked.container: written} if written else {}))
    first = nri.Container(id=asked.container, name=asked.name, annotations={MARK: mark} if mark else {})
    now = CpuSet.parse(had), NumaSet.parse(mems)
    known = known_of([(nri.PodSandbox(uid=asked.pod), first)], past)
    return owner_of(SMALL, occupancy or Occupancy(), asked, now, known)


def given(cpus: str, mems: str = "0", homes: str = "0", exclusive: str = "") -> Grant:
    """What was written down of the container."""
    pod = asks("a", 2).pod
    return Grant(pod, NumaSet.parse(homes), CpuSet.parse(cpus), NumaSet.parse(mems), CpuSet.parse(exclusive))


OLD_MARK = "cpus=0-3 mems=0"
"""As enforcers wrote it before they wrote anything down."""


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
    result = owner(cpus, homes, mark=OLD_MARK if marked else "")
    assert isinstance(result, Pinned)
    assert (str(result.homes), str(result.allocation.cpus), str(result.allocation.mems)) == (homes, cpus, homes)


@pytest.mark.parametrize(
    ("cpus", "marked"),
    [("", True), ("0-7", False), ("0-7", True), ("6-9", True)],
    ids=["none told", "never pinned", "given back", "not of this machine"],
)
def test_what_has_no_place_is_still_to_be_placed(cpus, marked) -> None:
    assert owner(cpus, mark=OLD_MARK if marked else "") is None


def test_a_cpuset_that_is_no_pool_and_has_no_mark_is_somebody_elses() -> None:
    assert owner("1-2", mark="") == Claim("1-2", "0")


def test_exclusive_cpus_are_found_again_unless_somebody_has_them_by_now() -> None:
    result = owner("0-1", mark=OLD_MARK, cpus=Cpus.EXCLUSIVE)
    assert isinstance(result, Pinned)
    assert str(result.allocation.exclusive) == "0-1"
    others = filled(SMALL, asks("b", 2, cpus=Cpus.EXCLUSIVE))
    assert owner("0-1", mark=OLD_MARK, cpus=Cpus.EXCLUSIVE, occupancy=others) is None


def test_mems_that_leave_all_open_are_no_binding() -> None:
    result = owner("0-3", "0-1", mark=OLD_MARK)
    assert isinstance(result, Pinned)
    assert result.allocation.mems == NumaSet()


@pytest.mark.parametrize(
    ("had", "mems", "written", "exclusive", "homes"),
    [
        ("0-3", "0", given("0-3"), "", "0"),
        ("0-3", "0", given("1-3"), "", "0"),
        ("1-3", "0", given("0-3"), "0", "0"),
        ("1-3", "0", given("0-3"), "", "0"),
        ("4-7", "1", given("0-3"), "", "1"),
        ("4-5", "1", given("4-5", "1", homes="1", exclusive="4-5"), "", "1"),
        ("2-3", "0-1", given("2-3", ""), "", "0"),
        ("0-7", "0-1", given("0-7", "0-1", homes="0-1"), "", "0-1"),
    ],
    ids=[
        "as written",
        "a pool that grew",
        "a pool that shrank",
        "a pool that shrank a little, for whoever came and went",
        "moved",
        "exclusive CPUs",
        "mems open",
        "the whole machine",
    ],
)
def test_what_was_written_down_is_known_again(had, mems, written, exclusive, homes) -> None:
    wishes = {"cpus": Cpus.EXCLUSIVE} if written.exclusive else {}
    result = owner(had, mems, written=written, exclusive=exclusive, **wishes)
    assert isinstance(result, Pinned)
    assert str(result.homes) == homes
    assert result.allocation.mems == (NumaSet.parse(mems) if written.mems else NumaSet())


@pytest.mark.parametrize(
    ("had", "mems", "written"),
    [
        ("2-3", "0", given("0-3")),
        ("0-3", "1", given("0-3")),
        ("2,6", "0", given("0-3")),
        ("0-6", "0", given("0-3")),
        ("2-3", "0", given("0-1", exclusive="0-1")),
        ("0-3", "0", Grant(asks("a", 2).pod, externally_managed=True)),
    ],
    ids=[
        "half of it, for nobody",
        "other mems",
        "both NUMA nodes",
        "most of both",
        "other exclusive CPUs",
        "another owner's before",
    ],
)
def test_what_was_written_down_and_is_otherwise_has_another_owner(had, mems, written) -> None:
    assert owner(had, mems, written=written) == Claim(had, mems)


def test_a_record_of_another_pod_says_nothing() -> None:
    assert owner("1-3", written=Grant("another", cpus=CpuSet.parse("1-3"))) == Claim("1-3", "0")
