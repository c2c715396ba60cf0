"""Whose work a running container's cpuset is taken for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from enforcer.hook.facts.pods import MARK, Claim
from enforcer.hook.ownership.adoption import Pinned, Running, key_of, known_of, owner_of
from enforcer.hook.ownership.checkpoint import Grant, Past
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Cpus, Scope, Span
from numakin.placement.state.occupancy import Allocation, Occupancy
from numakin.wire import nri_pb2 as nri
from tests.machines import EPYC_NPS1, NO_NUMA, SMALL
from tests.numakin.placement.asking import asks, filled


def owner(
    had: str,
    mems: str = "0",
    *,
    mark: str = "",
    written: Grant | None = None,
    exclusive: str = "",
    occupancy: Occupancy | None = None,
    machine: Machine = SMALL,
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
    known = known_of([Running(nri.PodSandbox(uid=asked.pod), first, now)], past)
    return owner_of(machine, occupancy or Occupancy(), asked, now, known)


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
    ("reservation", "domain"),
    [("a", ""), ("", "0-3,32-35")],
    ids=["written down", "by an enforcer that did not write it down"],
)
def test_cpus_that_happen_to_lie_in_one_cache_are_no_cache_domain_where_it_was_written_down(
    reservation, domain
) -> None:
    written = replace(given("1-2"), reservation=reservation)
    result = owner("1-2", written=written, machine=EPYC_NPS1, span=Span.CACHE)
    assert isinstance(result, Pinned)
    assert str(result.cache_domain) == domain


@pytest.mark.parametrize(
    ("cpus", "marked"),
    [("", True), ("0-7", False), ("0-7", True)],
    ids=["none told", "never pinned", "given back"],
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
    to_stay = filled(SMALL, asks("b", 2, cpus=Cpus.SHARED_STABLE))
    assert owner("2-3", written=given("2-3", exclusive="2-3"), cpus=Cpus.EXCLUSIVE, occupancy=to_stay) is None


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
    ("had", "mems", "written", "homes", "cpus", "bound"),
    [
        ("2-3", "0", given("0-3"), "0", "", "0"),
        ("0-3", "1", given("0-3"), "0", "", "0"),
        ("0-3", "0", given("0-3", "0-1"), "0", "", "0-1"),
        ("0-3", "0-1", given("0-3", "0"), "0", "", ""),
        ("2,6", "0", given("0-3"), "0", "", "0"),
        ("0-6", "0", given("0-3"), "0", "", "0"),
        ("2", "0", given("0-1", exclusive="0-1"), "0", "0-1", "0"),
        ("2-3", "0", given("0-1", exclusive="0-1"), "0", "2-3", "0"),
        ("6-7", "1", given("0-1", exclusive="0-1"), "1", "6-7", "1"),
    ],
    ids=[
        "half of its pool",
        "other mems",
        "fewer mems than cover what it may use",
        "all memory",
        "both NUMA nodes",
        "most of both",
        "fewer than its own CPUs",
        "as many others of its NUMA node",
        "as many others of another NUMA node: moved",
    ],
)
def test_what_was_written_down_and_is_otherwise_is_ours(had, mems, written, homes, cpus, bound) -> None:
    """Who writes cpusets again and again says so over the runtime. cpus: its own; who shares gets its pool with all."""
    wishes = {"cpus": Cpus.EXCLUSIVE} if written.exclusive else {}
    result = owner(had, mems, written=written, **wishes)
    assert isinstance(result, Pinned)
    assert (str(result.homes), str(result.allocation.exclusive)) == (homes, cpus)
    assert str(result.allocation.mems) == bound


def test_what_had_another_owner_before_has_it_still() -> None:
    assert owner("0-3", written=Grant(asks("a", 2).pod, externally_managed=True)) == Claim("0-3", "0")


@pytest.mark.parametrize("had", ["0-1", "4-5"], ids=["the move was not carried out", "it was"])
def test_a_move_that_was_under_way_has_been_made_or_not(had: str) -> None:
    source = given("0-1", exclusive="0-1")
    moved = replace(given("4-5", "1", "1", exclusive="4-5"), before=source)
    result = owner(had, written=moved, cpus=Cpus.EXCLUSIVE)
    assert isinstance(result, Pinned)
    assert (str(result.allocation.exclusive), str(result.homes)) == (had, "0" if had == "0-1" else "1")
    assert not result.differs(CpuSet.parse(had))


@pytest.mark.parametrize(
    ("written", "wishes"),
    [
        (given("0-1", exclusive="0-1"), {"cpus": Cpus.EXCLUSIVE}),
        (given("0-3"), {}),
    ],
    ids=["with CPUs of its own", "sharing"],
)
def test_who_has_the_whole_machine_is_not_pinned_yet(written: Grant, wishes: dict) -> None:
    """The updates were lost, or it was released."""
    assert owner("0-7", "0-1", written=written, **wishes) is None


@pytest.mark.parametrize(("written", "is_ours"), [("0-1", False), ("0-3", True)], ids=["its own", "the pool"])
def test_on_a_machine_of_one_numa_node_all_cpus_are_the_pool_and_nobodys_own(written: str, *, is_ours: bool) -> None:
    asked = asks("a", 2, cpus=Cpus.SHARED if is_ours else Cpus.EXCLUSIVE)
    grant = given(written, exclusive="" if is_ours else written)
    now = NO_NUMA.cpus, NumaSet.parse("0")
    found = owner_of(NO_NUMA, Occupancy(), asked, now, Past({asked.container: grant}))
    assert isinstance(found, Pinned) is is_ours


def test_an_exclusive_one_that_was_refused_shares_as_it_did() -> None:
    """By its record; without one it is guessed, within the quota and where the size is right."""
    result = owner("0-3", written=given("0-3"), cpus=Cpus.EXCLUSIVE)
    assert isinstance(result, Pinned)
    assert not result.allocation.exclusive


@pytest.mark.parametrize(
    ("had", "cpu", "limit", "own"),
    [("0-3", 4, None, "0-3"), ("0-3", 4, 3, ""), ("0-3", 2, None, "")],
    ids=["just as many", "more than its namespace may", "too many"],
)
def test_without_a_record_cpus_of_its_own_are_guessed(had: str, cpu: int, limit: int | None, own: str) -> None:
    asked = replace(asks("a", cpu, cpus=Cpus.EXCLUSIVE), max_exclusive_cpus=limit)
    found = owner_of(SMALL, Occupancy(), asked, (CpuSet.parse(had), NumaSet.parse("0")), Past())
    assert isinstance(found, Pinned)
    assert str(found.allocation.exclusive) == own


def test_no_guess_leaves_the_machine_without_a_shared_cpu() -> None:
    asked = asks("a", 4, cpus=Cpus.EXCLUSIVE)
    found = owner_of(NO_NUMA, Occupancy(), asked, (NO_NUMA.cpus - CpuSet.parse("3"), NumaSet.parse("0")), Past())
    assert found == Claim("0-2", "0")
    reserved = Occupancy(reserved=CpuSet.parse("0"))
    found = owner_of(
        NO_NUMA, reserved, asks("a", 3, cpus=Cpus.EXCLUSIVE), (CpuSet.parse("1-3"), NumaSet.parse("0")), Past()
    )
    assert isinstance(found, Pinned)
    assert str(found.allocation.exclusive) == "1-3", "the reserved one is left"


def test_no_guess_takes_what_others_share() -> None:
    others = filled(SMALL, asks("b", 1))
    asked = asks("a", 4, cpus=Cpus.EXCLUSIVE)
    homes = NumaSet.parse("0") if others.allocations["b-main"].cpus <= SMALL.node(0).cpus else NumaSet.parse("1")
    found = owner_of(SMALL, others, asked, (SMALL.cpus_of(homes), homes), Past())
    assert isinstance(found, Pinned)
    assert not found.allocation.exclusive


def test_a_record_of_another_pod_says_nothing() -> None:
    assert owner("1-3", written=Grant("another", cpus=CpuSet.parse("1-3"))) == Claim("1-3", "0")


def test_two_of_a_pod_that_were_to_change_places_have_not_the_same_cpus() -> None:
    """The move was written down and not carried out, and another owner wrote one's cpuset since."""
    asked = asks("a", 1, cpus=Cpus.EXCLUSIVE)
    here, there = (replace(given(cpu, exclusive=cpu), reservation=asked.reservation_key) for cpu in "01")
    known = Past({asked.container: replace(there, before=here), "a-side": replace(here, before=there)})
    held = Allocation("a-side", "side", asked.pod, asked.reservation_key, there.cpus, exclusive=there.cpus)
    occupancy = Occupancy().changed(
        reservations={asked.reservation_key: asked.reservation(NumaSet.parse("0"), ())}, allocations={"a-side": held}
    )
    result = owner_of(SMALL, occupancy, asked, (CpuSet.parse("2,7"), NumaSet.parse("0-1")), known)
    assert isinstance(result, Pinned)
    assert result.allocation.exclusive == here.cpus


def test_who_shared_again_before_a_move_has_no_cpus_of_its_own_though_it_had_before_that() -> None:
    """What it was given last and what the runtime carried out last may be two changes apart."""
    earlier = given("0-1", exclusive="0-1")
    result = owner("0-3", written=replace(given("4-7", "1", "1"), before=earlier), cpus=Cpus.EXCLUSIVE)
    assert isinstance(result, Pinned)
    assert (str(result.homes), str(result.allocation.cpus), str(result.allocation.exclusive)) == ("0", "0-3", "")


@pytest.mark.parametrize("taken", [False, True], ids=["are there", "are another one's alone by now"])
def test_a_cpuset_that_was_to_stay_stays_while_its_cpus(*, taken: bool) -> None:
    others = filled(SMALL, asks("b", 2, cpus=Cpus.EXCLUSIVE)) if taken else Occupancy()
    stable = replace(given("0-1"), stable=True)
    result = owner("0-1", written=stable, occupancy=others, cpus=Cpus.SHARED_STABLE)
    assert (result is None) is taken
    assert result is None or (isinstance(result, Pinned) and result.allocation.stable)


@pytest.mark.parametrize(
    ("homes", "key"),
    [(["0", "0"], "uid"), (["0", "1"], "uid/main"), (["0-1", "0-1"], "uid/main")],
    ids=["on one NUMA node: as one", "on two: in parts", "each on two: in parts"],
)
def test_what_an_older_enforcer_wrote_down_tells_by_its_pods_places_how_it_was_placed(
    homes: list[str], key: str
) -> None:
    known = Past({f"c{at}": Grant("uid", NumaSet.parse(home)) for at, home in enumerate(homes)})
    assert {key_of("main", Scope.CONTAINER, grant, known) for grant in known.grants.values()} == {key}
    assert {key_of("main", Scope.POD, grant, known) for grant in known.grants.values()} == {"uid"}


def test_a_key_that_was_written_down_is_known_again() -> None:
    known = Past({"c": Grant("uid", NumaSet.parse("0"), reservation="uid/main")})
    assert key_of("main", Scope.CONTAINER, known.grants["c"], known) == "uid/main"
