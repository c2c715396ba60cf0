"""The block of all nodes' numbers is what each node's own table says, whatever came and went before."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.state.columns.cells import COLUMNS
from extender.state.columns.needs import Needs
from extender.state.columns.store import ColumnStore
from extender.state.node_view import NodeView
from lab.standins.machines import MACHINES
from tests import examples
from tests.extender.machines import views

XEON = MACHINES["xeon-8380"].machine

NAMES = ["a", "b", "c"]

ANYTHING = Needs((), rest=0, leaves=None)

STEPS = st.lists(
    st.one_of(
        st.sampled_from(NAMES).flatmap(views),
        st.tuples(st.just("drop"), st.sampled_from(NAMES)),
        st.tuples(st.just("received"), st.sampled_from(NAMES)),
        st.just("look"),
    ),
    max_size=12,
)


def numbers(cells, at: int) -> list[list[float]]:
    """Of one node, for each of its NUMA nodes."""
    rows = np.array([getattr(cells, name)[:, at] for name in COLUMNS]).T.tolist()
    return [row for row in rows if row[0] >= 0]


@settings(max_examples=examples.of(100), deadline=None)
@given(STEPS)
def test_candidates_tell_of_each_node_what_it_was_told_last(steps):
    column_store, sent, received = ColumnStore(), {}, {}
    for now, step in enumerate(steps):
        match step:
            case "look":
                column_store.candidates(NAMES, now)
            case ("drop", name):
                column_store.drop(name)
                sent.pop(name, None)
                received.pop(name, None)
            case ("received", name):
                column_store.received(name, now)
                received.update({name: now} if name in sent else {})
            case view:
                column_store.put(view)
                sent[view.name] = view
    candidates = column_store.candidates([*NAMES, "unknown"], 100.0, ANYTHING)
    assert [*candidates.views] == [sent.get(name) for name in NAMES] + [None]
    assert candidates.ages.tolist() == [100.0 - received.get(name, -np.inf) for name in [*NAMES, "unknown"]]
    for at, name in enumerate(NAMES):
        table = sent[name].table if name in sent else None
        assert numbers(candidates.weighing.cells, at) == ([] if table is None else table.T.tolist())


def test_what_was_answered_of_a_node_stays_known_where_it_was_shown_otherwise_for_a_moment():
    column_store, usual = ColumnStore(), NodeView("a", "s", "1", XEON)
    column_store.put(usual)
    before = column_store.candidates(["a"], 0.0).revisions
    column_store.put(NodeView("a", "s", "1", XEON, registered=False))
    column_store.put(usual)
    assert column_store.candidates(["a"], 0.0).revisions == before


def test_a_node_that_takes_over_a_slot_is_not_as_old_as_the_one_before():
    column_store = ColumnStore()
    column_store.put(NodeView("gone", "s", "1", XEON))
    column_store.received("gone", 1.0)
    column_store.drop("gone")
    column_store.put(NodeView("new", "s", "1", XEON))
    assert np.isinf(column_store.candidates(["new"], 2.0).ages).all()


@pytest.mark.parametrize("count", [1, 70, 300])
def test_there_is_room_for_any_number_of_nodes(count):
    column_store = ColumnStore()
    names = [f"n{at}" for at in range(count)]
    for at, name in enumerate(names):
        column_store.put(NodeView(name, "s", "1", XEON))
        column_store.received(name, float(at))
    candidates = column_store.candidates(names, 1000.0, ANYTHING)
    assert candidates.ages.tolist() == [1000.0 - at for at in range(count)]
    assert (candidates.weighing.cells.whole == 1000 * len(XEON.numa_nodes[0].cpus)).all()


def test_the_views_of_few_nodes_keep_no_other_ones():
    """They are kept as long as somebody may ask why a pod is where it is."""
    column_store = ColumnStore()
    names = [f"n{at}" for at in range(9)]
    for name in names:
        column_store.put(NodeView(name, "s", "1", XEON))
    others = [weakref.ref(view) for view in column_store.candidates(names[2:], 0.0).views]
    kept = column_store.candidates(names[:2], 0.0).views
    for name in names:
        column_store.put(NodeView(name, "s", "2", XEON))
    column_store.refresh()
    gc.collect()
    assert [view.name for view in kept] == names[:2]
    assert [other() for other in others] == [None] * 7
