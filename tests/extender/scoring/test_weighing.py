"""The two forms of the objective are one: arrays give what decide() gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.scoring import following
from extender.scoring.predict import place_on_one, predict
from extender.scoring.shares import KinShares
from extender.scoring.strict import refusal
from extender.scoring.weighing import MOST_DECIDED, over_arrays, weigh
from extender.state.column_store import Candidates, cells_of
from extender.state.faults import Faults
from extender.state.kins import Kins
from extender.state.node_view import NodeView
from extender.state.pods import ContainerRow
from placement.decide.decide import Kin
from placement.model.cpuset import NumaSet
from placement.optin.quotas import Quota
from standins.machines import MACHINES
from tests.extender.machines import views, want

XEON = MACHINES["xeon-8380"].machine

SIDECAR = ContainerRow("proxy", {"cpu": "500m"}, init=True, restartable=True)
SETUP = ContainerRow("setup", {"cpu": "2"}, init=True)
OTHER = ContainerRow("other", {"cpu": "1"})

ASKED = [
    {},
    {"cpu": "0", "memory": "0"},
    {"cpu": "2", "memory": "3Gi"},
    {"cpu": "5", "memory": "1Gi"},
    {"size": "8"},
    {"group": "auto"},
    {"policy": "single-numa-node", "cpu": "3"},
    {"policy": "restricted", "memory": "9Gi"},
    {"cpus": "exclusive", "cpu": "2"},
    {"cpus": "exclusive", "cpu": "1500m"},
    {"cpus": "exclusive-cores", "cpu": "1"},
    {"cpus": "exclusive-cores", "cpu": "3"},
    {"cpus": "exclusive", "cpu": "1", "size": "4"},
    {"cpus": "exclusive", "cpu": "1", "beside": (OTHER,)},
    {"cpus": "exclusive-cores", "cpu": "1", "beside": (OTHER,)},
    {"cpus": "exclusive", "cpu": "1", "beside": (SETUP, SIDECAR)},
    {"cpus_of_main": "exclusive", "cpu": "2", "beside": (SIDECAR,)},
    {"cpus_of_main": "exclusive", "cpus_of_other": "exclusive-cores", "beside": (OTHER,)},
    {"cpus_of_proxy": "exclusive", "policy_of_main": "restricted", "beside": (SIDECAR,)},
    {"cpus": "exclusive", "scope": "container", "beside": (OTHER,)},
    {"scope": "container"},
    {"scope": "container", "cpu": "2", "beside": (OTHER,)},
    {"scope": "container", "cpu": "2", "policy_of_main": "restricted", "beside": (SETUP, SIDECAR)},
]

KINS = st.builds(
    Kin,
    weights=st.dictionaries(st.sampled_from(["n0-0", "n1-1", "n2-2"]), st.sampled_from([0.5, 3.0]), max_size=2),
    elsewhere=st.sampled_from([0.0, 1.0, 7.5]),
    planned=st.sampled_from([NumaSet(), NumaSet(), NumaSet.of((0,)), NumaSet.of((1,))]),
)

ROOMS = st.sampled_from([0, 1, 2000])


def candidates_of(nodes, kins, room_milli=0):
    """All are known, live, and unlike each other. room_milli: what the rest of the pod's group will ask for."""
    count = len(nodes)
    cells, names = cells_of(view.table for view in nodes), [view.name for view in nodes]
    near = {name: replace(kin, room_milli=room_milli) for name, kin in zip(names, kins, strict=True)}
    return Candidates(
        names,
        list(nodes),
        np.zeros(count),
        np.ones(count, dtype=bool),
        cells,
        np.arange(count),
        np.arange(1, count + 1),
        Kins(Kin(room_milli=room_milli), near),
        list(range(count)),
    )


@settings(max_examples=200, deadline=None)
@given(
    st.tuples(*(views(f"n{at}") for at in range(3))),
    st.sampled_from(ASKED),
    st.tuples(KINS, KINS, KINS),
    ROOMS,
    st.sampled_from([None, None, 0, 1, 3]),
)
def test_every_score_is_the_score_of_the_decision(nodes, asked, kins, room_milli, most_exclusive):
    pod = want(**asked, quota=Quota(most_exclusive))
    candidates = candidates_of(nodes, kins, room_milli)
    weighed = weigh(
        candidates, pod, over_arrays(candidates, pod, KinShares(), Faults()), candidates.registered, Faults()
    )
    for view, score, near in zip(nodes, weighed.score, weighed.kin, strict=True):
        decision = predict(view.machine, view.occupancy, pod, candidates.kins.of(view.name))
        assert score == pytest.approx(decision.score, abs=1e-9)
        assert 0 <= near <= 1 + 1e-9


@settings(max_examples=200, deadline=None)
@given(st.tuples(*(views(f"n{at}") for at in range(3))), st.sampled_from(ASKED))
def test_what_can_follow_is_that_of_the_decisions_numa_node_however_it_was_made(nodes, asked):
    pod, candidates = want(**asked), replace(candidates_of(nodes, [Kin()] * 3), kins=Kins())
    weighed = weigh(
        candidates, pod, over_arrays(candidates, pod, KinShares(), Faults()), candidates.registered, Faults()
    )
    if pod.opt_in.size:
        assert weighed.following is None
        return
    for view, score, share in zip(nodes, weighed.score, weighed.following, strict=True):
        decision = predict(view.machine, view.occupancy, pod, Kin())
        known = following.predicted(view.machine, view.occupancy, pod, decision)
        assert share == pytest.approx(known if score else 0)


@settings(max_examples=200, deadline=None)
@given(views("n"), st.sampled_from(ASKED), KINS, ROOMS)
def test_the_place_that_arrays_know_is_that_of_the_decision(node, asked, kin, room_milli):
    pod, candidates = want(**asked), candidates_of([node], [kin], room_milli)
    known = over_arrays(candidates, pod, KinShares(), Faults())
    if known.sure[0]:
        decided = predict(node.machine, node.occupancy, pod, candidates.kins.of("n"))
        assert known.homes[0] == decided.decisions[0].numa_nodes.lowest
        assert place_on_one(node.machine, node.occupancy, pod, int(known.homes[0])) in {None, decided.place}


@settings(max_examples=100, deadline=None)
@given(views("n"), st.sampled_from(ASKED), KINS, ROOMS)
def test_a_node_that_holds_a_pod_for_certain_is_never_refused_to_it(node, asked, kin, room_milli):
    pod, candidates = want(**asked), candidates_of([node], [kin], room_milli)
    if over_arrays(candidates, pod, KinShares(), Faults()).sure[0]:
        assert refusal(node, pod, candidates.kins.of("n")) is None


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"cpu": "2"}, id="shared"),
        pytest.param({"cpus": "exclusive", "cpu": "2"}, id="own"),
        pytest.param({"cpus": "exclusive-cores", "cpu": "2"}, id="own-cores"),
        pytest.param({"cpus_of_main": "exclusive", "cpu": "2", "beside": (SIDECAR,)}, id="own-beside-a-sidecar"),
        pytest.param({"scope": "container", "cpus": "exclusive"}, id="container-scope-of-one"),
        pytest.param({"scope": "container", "beside": (OTHER,)}, id="containers-one-by-one"),
    ],
)
def test_the_common_pods_are_weighed_over_arrays_alone(asked):
    empty = NodeView("n", "s", "1", XEON)
    assert over_arrays(candidates_of([empty], [Kin(elsewhere=3.0)]), want(**asked), KinShares(), Faults()).sure.all()


def test_nodes_on_which_a_pod_would_spread_are_decided_so_many_at_a_time():
    """What is left over is decided for its next replica: what was decided is remembered."""
    count = MOST_DECIDED + 20
    nodes = [NodeView(f"n{at}", "s", "1", XEON) for at in range(count)]
    wide = str(len(XEON.numa_nodes[0].cpus) + 1)
    candidates = candidates_of(nodes, [Kin()] * count)
    pods = [want(uid, cpu=wide) for uid in ("one", "two")]
    first, second = (
        weigh(candidates, pod, over_arrays(candidates, pod, KinShares(), Faults()), candidates.registered, Faults())
        for pod in pods
    )
    assert np.count_nonzero(first.score) == MOST_DECIDED
    assert np.count_nonzero(second.score) == count
