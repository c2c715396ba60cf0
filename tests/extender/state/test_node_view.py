"""A node's view with pods assumed on it is the same whichever way it came to be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.scoring.predict import predict
from extender.state.columns.cells import table
from extender.state.node_view import UNMADE, Assumption
from numakin.placement.decide.decide import Kin
from tests import examples
from tests.extender.machines import views, want

PODS = ["p0", "p1", "p2", "p3"]


def assumed(view, pod: str, cpus: str) -> Assumption:
    """Where the node's enforcer would put it."""
    result = predict(view.machine, view.occupancy, want(pod, cpus=cpus, cpu="1"), Kin())
    return Assumption(pod, view.name, result.numa_nodes, result.reservations, result.allocations, until=1.0)


@settings(max_examples=examples.of(100), deadline=None)
@given(
    views(), st.lists(st.tuples(st.sampled_from(PODS), st.sampled_from(["shared", "exclusive", "gone"])), max_size=10)
)
def test_what_is_carried_on_is_what_would_be_made_anew(view, steps):
    for pod, what in steps:
        view = view.without_assumed(pod)
        if what != "gone":
            view = view.assuming(assumed(view, pod, what))
    carried, anew = view.occupancy, replace(view, occupancy=UNMADE).occupancy
    assert carried.reservations == anew.reservations
    assert carried.allocations == anew.allocations
    assert carried.exclusive == anew.exclusive
    assert carried.cpu_load(view.machine) == anew.cpu_load(view.machine)
    assert sorted(carried.directory.by_pod) == sorted(anew.directory.by_pod)


@settings(max_examples=examples.of(200), deadline=None)
@given(
    views(),
    st.lists(
        st.tuples(
            st.sampled_from([*PODS, "n-0", "n-1"]),
            st.sampled_from(["shared", "exclusive", "gone", "ended"]),
            st.booleans(),
        ),
        max_size=10,
    ),
)
def test_carried_numbers_are_those_that_would_be_counted_anew(view, steps):
    for pod, what, counted in steps:
        if counted:
            _ = view.table
        view = view.without_ended(pod) if what == "ended" else view.without_assumed(pod)
        if what in {"shared", "exclusive"}:
            view = view.assuming(assumed(view, pod, what))
    anew = table(view.machine, view.occupancy)
    assert (view.table is None and anew is None) or np.array_equal(view.table, anew)


@settings(max_examples=examples.of(50), deadline=None)
@given(views())
def test_a_confirmed_place_is_the_same_room_with_the_same_numbers(view):
    place = assumed(view, PODS[0], "shared")
    before = view.assuming(place)
    known, bound = before.table, replace(place, bound=True, until=2.0)
    after = before.confirming(bound)
    assert after.assumed == {**view.assumed, PODS[0]: bound}
    assert after.occupancy == view.assuming(bound).occupancy
    anew = replace(after, occupancy=UNMADE).table
    assert (known is None and anew is None) or np.array_equal(after.table, anew)
