"""What is kept of a group's shares is what would be worked out now, whatever its nodes became in between."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from extender.scoring.shares import GROUPS, KinShares
from extender.scoring.single import needs_of
from extender.state.columns.store import ColumnStore
from extender.state.faults import Faults
from extender.state.kins import Kins
from numakin.placement.decide.decide import Kin
from tests import examples
from tests.extender.machines import views, want

NAMES = ("a", "b", "c")

CHANGES = st.lists(
    st.one_of(st.sampled_from(NAMES).flatmap(views), st.tuples(st.just("drop"), st.sampled_from(NAMES))), max_size=4
)


def asked(store: ColumnStore, shares: KinShares, names, group: str, elsewhere: float):
    kins = Kins(near={name: Kin(elsewhere=elsewhere) for name in NAMES})
    pod = want(group=group)
    candidates = store.candidates(names, 0.0, needs_of(pod, kins), kins=kins, unlike=kins.near)
    on_nodes = shares.of(candidates, candidates.weighing, pod, Faults())
    return on_nodes.share.tolist(), on_nodes.plain.tolist()


@settings(max_examples=examples.of(60), deadline=None)
@given(st.lists(st.tuples(CHANGES, st.permutations(NAMES), st.sampled_from(["shop", "bank"]), st.sampled_from([0, 3]))))
def test_kept_shares_are_those_of_the_nodes_as_they_are(rounds):
    store, kept = ColumnStore(), KinShares()
    for changes, names, group, elsewhere in rounds:
        for change in changes:
            match change:
                case ("drop", name):
                    store.drop(name)
                case view:
                    store.put(view)
        anew = asked(store, KinShares(), names, group, elsewhere)
        assert asked(store, kept, names, group, elsewhere) == anew


@settings(max_examples=examples.of(5), deadline=None)
@given(views("a"))
def test_a_group_that_was_forgotten_is_worked_out_again(view):
    store, shares = ColumnStore(), KinShares()
    store.put(view)
    first = asked(store, shares, ("a",), "shop", 1.0)
    for number in range(GROUPS + 1):
        asked(store, shares, ("a",), f"other-{number}", 1.0)
    assert asked(store, shares, ("a",), "shop", 1.0) == first
