"""What a step promised, what it came to, and the way back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.plan.problem import REMOTE_SHARE, Workload
from numakin.placement.plan.proof import Proof, promise, proven, way_back
from numakin.placement.plan.rebalance import Board, Relocation
from numakin.placement.state.occupancy import Occupancy
from tests import machines
from tests.numakin.placement.asking import demand, nodes
from tests.numakin.placement.plan.seated import seated

SMALL = machines.SMALL
TALK = {("a", "b"): 3.0, ("a", "c"): 1.0, ("b", "c"): 8.0}
STEP = (Relocation("a", nodes("0"), nodes("1"), 0.5),)


def there(**where: str) -> Occupancy:
    return seated(where)[0]


def test_a_step_promises_what_stays_inside_once_it_is_made() -> None:
    assert promise(there(a="0", b="1", c="0"), STEP, TALK) == Proof(0.25, 0.75)


def test_it_is_proven_by_who_sits_where_and_talks_then() -> None:
    promised = Proof(0.25, 0.75)
    now = there(a="1", b="1", c="0")
    assert proven(now, STEP, TALK, promised).after == 0.75
    assert proven(now, STEP, {("a", "c"): 1.0, ("a", "b"): 1.0}, promised).after == 0.5
    assert proven(there(a="1", b="0", c="0"), STEP, TALK, promised).after == 0.0


@pytest.mark.parametrize(("after", "helped"), [(0.9, True), (0.51, True), (0.49, False), (0.1, False)])
def test_half_of_what_was_promised_is_help(after: float, helped: bool) -> None:  # noqa: FBT001
    proof = Proof(0.2, 0.8, after)
    assert (proof.known, proof.helped) == (True, helped)


@pytest.mark.parametrize("talk", [{}, {("b", "c"): 1.0}, {("a", "gone"): 1.0}, {("a", "a"): 1.0}])
def test_of_who_exchanges_nothing_nothing_is_known(talk: dict[tuple[str, str], float]) -> None:
    assert not proven(there(a="1", b="1", c="0"), STEP, talk, Proof(0.25, 0.75)).known


def test_two_who_moved_together_count_what_they_exchange_once() -> None:
    step = (STEP[0], Relocation("c", nodes("0"), nodes("1"), 0.5))
    assert promise(there(a="0", b="1", c="0"), step, TALK) == Proof(1 / 12, 1.0)


def test_the_way_back_leads_where_they_were_and_gains_what_leaves_otherwise() -> None:
    talk = {("a", "b"): 1.0, ("a", "c"): 3.0}
    (back,) = way_back(SMALL, there(a="1", b="1", c="0"), STEP, talk)
    assert (back.reservation, back.source, back.target) == ("a", nodes("1"), nodes("0"))
    assert back.gain == pytest.approx(0.5, abs=REMOTE_SHARE)


class TestBetweenCaches:
    """The members are kept within domains of NUMA node 0."""

    DOMAINS = (CpuSet.parse("0-1"), CpuSet.parse("2-3"))
    MOVE = (Relocation("a", nodes("0"), nodes("0"), 0.5, *DOMAINS),)

    def kept(self, **where: int) -> Occupancy:
        occupancy = there(**dict.fromkeys(where, "0"))
        for key, at in where.items():
            here = replace(occupancy.reservations[key], cache_domain=self.DOMAINS[at])
            occupancy = occupancy.changed({key: here})
        return occupancy

    def test_what_stays_inside_one_cache_counts(self) -> None:
        promised = promise(self.kept(a=0, b=1, c=0), self.MOVE, TALK)
        assert promised == Proof(0.25, 0.75)
        assert proven(self.kept(a=1, b=1, c=0), self.MOVE, TALK, promised).after == 0.75

    def test_the_way_back_is_to_the_cache_it_was_in(self) -> None:
        (back,) = way_back(SMALL, self.kept(a=1, b=1, c=0), self.MOVE, {("a", "c"): 1.0})
        assert (back.source_domain, back.target_domain, back.gain) == (*self.DOMAINS[::-1], 1.0)


PODS = "abcdef"
PAIRS = st.tuples(st.sampled_from(PODS), st.sampled_from(PODS)).filter(lambda pair: pair[0] < pair[1])


@given(
    st.fixed_dictionaries(dict.fromkeys(PODS, st.sampled_from("01"))),
    st.dictionaries(PAIRS, st.floats(0.1, 10), min_size=1, max_size=8),
)
def test_a_step_that_was_chosen_promises_what_it_gains(where: dict[str, str], talk: dict) -> None:
    """But for what a nearer NUMA node counts."""
    occupancy = there(**where)
    known = [Workload(pod, demand(2), 1) for pod in PODS]
    steps = Board.of(SMALL, occupancy, {pod: pod for pod in PODS}, known, talk, movable=PODS).steps(2)
    for step in steps[:1]:
        members = {way.reservation for way in step}
        total, own = sum(talk.values()), sum(weight for pair, weight in talk.items() if members & {*pair})
        promised = promise(occupancy, step, talk)
        assert (promised.promised - promised.before) * own / total == pytest.approx(step[0].gain, abs=REMOTE_SHARE)
