"""Who gives up a place where all are taken: the client address that has most, its oldest."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from extender.serving.places import Places


@dataclass(eq=False)
class Socket:
    peer: str


MOST = 5


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcd")), max_size=40))
def test_an_address_loses_a_place_only_to_one_that_has_fewer(steps: list[tuple[bool, str]]) -> None:
    peers, there = Places[Socket](MOST), []
    for comes, peer in steps:
        if not comes:
            gone = next((each for each in there if each.peer == peer), Socket(peer))
            assert peers.remove(gone) == (gone in there)
            there = [each for each in there if each is not gone]
            continue
        if peers.full:
            other = peers.in_the_way(peer)
            has = {name: sum(each.peer == name for each in there) for name in "abcd"}
            if other is None:
                assert has[peer] == max(has.values())
                continue
            assert has[other.peer] == max(has.values()) > has[peer]
            assert other is next(each for each in there if each.peer == other.peer)
            peers.remove(other)
            there.remove(other)
        peers.add(one := Socket(peer))
        there.append(one)
        assert {each: peers.of(each) for each in "abcd"} == {
            each: sum(s.peer == each for s in there) for each in "abcd"
        }
    assert len(peers) == len(there) <= MOST
    assert set(peers.all()) == set(there)
