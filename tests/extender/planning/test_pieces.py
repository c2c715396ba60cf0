"""Pods that may not share a node are in pieces that may."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extender.planning.pieces import pieces
from extender.state.pod_terms import HOST, NO_POD_TERMS, DomainTerm, PodKind, PodSelector, PodTerms, SpreadTerm


def kind(name: str, apart: str = "") -> PodKind:
    term = DomainTerm(HOST, PodSelector(frozenset([("app", apart)])))
    return PodKind(frozenset([("app", name)]), PodTerms(away=(term,)) if apart else NO_POD_TERMS)


WEB, DB, CACHE = kind("web", "web"), kind("db", "db"), kind("cache")


def parted(pods: dict[str, PodKind], **there: list[PodKind]) -> list[tuple[str, list[str]]]:
    return [(piece.node, sorted(piece.uids)) for piece in pieces(pods, there)]


def test_replicas_of_two_workloads_are_in_pairs():
    pods = {"web-0": WEB, "web-1": WEB, "db-0": DB, "db-1": DB}
    assert parted(pods) == [("", ["db-0", "web-0"]), ("", ["db-1", "web-1"])]


def test_who_says_nothing_is_with_the_first_piece():
    pods = {"cache-0": CACHE, "cache-1": CACHE, "web-0": WEB, "web-1": WEB}
    assert parted(pods) == [("", ["cache-0", "cache-1", "web-0"]), ("", ["web-1"])]


def test_what_one_of_two_says_holds_for_both():
    assert parted({"cache-0": CACHE, "web-0": kind("web", "cache")}) == [("", ["web-0"]), ("", ["cache-0"])]


def test_pods_are_beside_members_that_they_may_be_beside():
    pods = {"web-1": WEB, "db-0": DB, "db-1": DB}
    assert parted(pods, a=[WEB]) == [("a", ["db-0"]), ("", ["db-1", "web-1"])]


def test_of_those_that_are_spread_over_hosts_as_many_as_may_be_are_together():
    term = SpreadTerm(HOST, PodSelector(frozenset([("app", "web")])), most=2)
    web = PodKind(frozenset([("app", "web")]), PodTerms(spread=(term,)))
    pods = {f"web-{at}": web for at in range(3)} | {"db-0": DB}
    assert parted(pods, a=[web]) == [("a", ["db-0", "web-0"]), ("", ["web-1", "web-2"])]
    assert parted(pods, a=[web._replace(ending=True)]) == [("a", ["db-0", "web-0", "web-1"]), ("", ["web-2"])]


KINDS = st.sampled_from([WEB, DB, CACHE, kind("web", "db"), kind("cache", "cache")])


@given(pods=st.lists(KINDS, max_size=12), there=st.dictionaries(st.sampled_from("ab"), st.lists(KINDS, max_size=2)))
def test_each_pod_is_in_one_piece_with_whom_it_may_share_a_node(pods, there):
    named = {f"{at:02}": each for at, each in enumerate(pods)}
    found = pieces(named, there)
    assert sorted(uid for piece in found for uid in piece.uids) == sorted(named)
    for piece in found:
        mine = [named[uid] for uid in piece.uids]
        others = [*mine, *there.get(piece.node, ())]
        assert not any(each.excludes(other) for at, each in enumerate(mine) for other in others[at + 1 :])
