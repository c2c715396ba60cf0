"""The two forms of the objective are one: arrays give what decide() gives."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.scoring import following
from extender.scoring.predict import place_on_one, predict
from extender.scoring.shares import KinShares
from extender.scoring.single import needs_of
from extender.scoring.strict import refusal
from extender.scoring.weighing import MOST_DECIDED, over_arrays, weigh, within_quota
from extender.state.columns import store
from extender.state.columns.store import ColumnStore
from extender.state.faults import Faults
from extender.state.kins import Kins
from extender.state.node_view import NodeView
from extender.state.pods import ContainerRow
from lab.standins.machines import MACHINES
from numakin.placement.decide.decide import Kin
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.optin.quotas import Quota
from numakin.placement.state.yielded import Yielded
from tests import examples
from tests.extender.machines import views, want

XEON = MACHINES["xeon-8380"].machine

SIDECAR = ContainerRow("proxy", {"cpu": "500m"}, init=True, restartable=True)
SETUP = ContainerRow("setup", {"cpu": "2"}, init=True)
SHORT = ContainerRow("short", {"cpu": "2500m"}, init=True)
OTHER = ContainerRow("other", {"cpu": "1"})
SLICE = ContainerRow("slice", {"cpu": "2"}, {"cpu": "2"})

ASKED = [
    {},
    {"cpu": "0", "memory": "0"},
    {"cpu": "2", "memory": "3Gi"},
    {"cpu": "5", "memory": "1Gi"},
    {"size": "8"},
    {"used_milli": 1900},
    {"used_milli": 5000, "beside": (OTHER,)},
    {"used_milli": 3000, "cpus": "exclusive", "cpu": "1", "beside": (OTHER,)},
    {"used_milli": 3000, "scope": "container", "beside": (OTHER,)},
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
    {"cpus": "exclusive", "cpu": "1500m", "beside": (SHORT, SIDECAR)},
    {"cpus_of_main": "exclusive-cores", "cpu": "3", "beside": (SIDECAR,)},
    {"cpus_of_main": "exclusive", "cpu": "1500m", "used_milli": 2700, "beside": (OTHER,)},
    {"cpus": "exclusive-cores", "cpu": "1500m", "beside": (replace(OTHER, requests={"cpu": "2500m"}), SIDECAR)},
    {"cpus_of_main": "exclusive", "cpu": "2", "beside": (SIDECAR,)},
    {"cpus_of_main": "exclusive", "cpus_of_other": "exclusive-cores", "beside": (OTHER,)},
    {"cpus_of_proxy": "exclusive", "policy_of_main": "restricted", "beside": (SIDECAR,)},
    {"cpus": "exclusive", "scope": "container", "beside": (OTHER,)},
    {"cpus": "shared-stable", "cpu": "2"},
    {"cpus": "exclusive", "cpus_of_main": "shared-stable", "beside": (OTHER,)},
    {"own": "3", "cpu": "0", "beside": (OTHER,)},
    {"own": "3", "scope": "container", "beside": (OTHER,)},
    {"own": "4", "cpus": "exclusive", "cpu": "2", "beside": (OTHER,)},
    {"own": "4", "cpus": "exclusive", "beside": (SLICE, SIDECAR)},
    {"own": "1", "cpus": "exclusive-cores", "cpu": "0", "beside": (SETUP,)},
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


def candidates_of(pod, nodes, kins, room_milli=0):
    """All are known, live, and unlike each other. room_milli: what the rest of the pod's group will ask for."""
    near = {view.name: replace(kin, room_milli=room_milli) for view, kin in zip(nodes, kins, strict=True)}
    return asked(store_of(nodes), pod, [*near], Kins(Kin(room_milli=room_milli), near))


def store_of(nodes):
    store = ColumnStore()
    for view in nodes:
        store.put(view)
        store.received(view.name, 0.0)
    return store


def asked(store, pod, names, kins):
    return store.candidates(names, 0.0, needs_of(pod, kins), kins=kins, unlike=kins.near)


def arrays(candidates, pod):
    return within_quota(over_arrays(candidates, pod, KinShares(), Faults()), candidates, pod)


@settings(max_examples=examples.of(200), deadline=None)
@given(
    st.tuples(*(views(f"n{at}") for at in range(3))),
    st.sampled_from(ASKED),
    st.tuples(KINS, KINS, KINS),
    ROOMS,
    st.sampled_from([None, None, 0, 1, 3]),
)
def test_every_score_is_the_score_of_the_decision(nodes, asks, kins, room_milli, most_exclusive):
    pod = want(**asks, quota=Quota(most_exclusive))
    candidates = candidates_of(pod, nodes, kins, room_milli)
    weighed = weigh(candidates, pod, arrays(candidates, pod), candidates.placing, Faults())
    for view, score, near in zip(nodes, weighed.score, weighed.kin, strict=True):
        decision = predict(view.machine, view.occupancy, pod, candidates.kins.of(view.name))
        assert score == pytest.approx(decision.score, abs=1e-9)
        assert 0 <= near <= 1 + 1e-9


@settings(max_examples=examples.of(200), deadline=None)
@given(st.tuples(*(views(f"n{at}") for at in range(3))), st.sampled_from(ASKED))
def test_what_can_follow_is_that_of_the_decisions_numa_node_however_it_was_made(nodes, asks):
    pod = want(**asks)
    names = [view.name for view in nodes]
    candidates = store_of(nodes).candidates(names, 0.0, needs_of(pod, Kins()), unlike=names)
    weighed = weigh(candidates, pod, arrays(candidates, pod), candidates.placing, Faults())
    if pod.opt_in.size:
        assert weighed.following is None
        return
    for view, score, share in zip(nodes, weighed.score, weighed.following, strict=True):
        decision = predict(view.machine, view.occupancy, pod, Kin())
        known = following.predicted(view.machine, view.occupancy, pod, decision)
        assert share == pytest.approx(known if score else 0)


@settings(max_examples=examples.of(200), deadline=None)
@given(views("n"), st.sampled_from(ASKED), KINS, ROOMS)
def test_the_place_that_arrays_know_is_that_of_the_decision(node, asks, kin, room_milli):
    pod = want(**asks)
    candidates = candidates_of(pod, [node], [kin], room_milli)
    known = arrays(candidates, pod)
    if known.sure[0]:
        decided = predict(node.machine, node.occupancy, pod, candidates.kins.of("n"))
        assert known.homes[0] == decided.decisions[0].numa_nodes.lowest
        assert place_on_one(node.machine, node.occupancy, pod, int(known.homes[0])) in {None, decided.place}


@settings(max_examples=examples.of(100), deadline=None)
@given(views("n"), st.sampled_from(ASKED), KINS, ROOMS)
def test_a_node_that_holds_a_pod_for_certain_is_never_refused_to_it(node, asks, kin, room_milli):
    pod = want(**asks)
    candidates = candidates_of(pod, [node], [kin], room_milli)
    if arrays(candidates, pod).sure[0]:
        assert refusal(node, pod, candidates.kins.of("n")) is None


@pytest.mark.parametrize(
    ("asks", "over_arrays"),
    [({"cpu": "2"}, True), ({"cpu": str(len(XEON.numa_nodes[0].cpus) + 1)}, False)],
    ids=["over arrays", "by the decision itself"],
)
def test_a_node_where_another_owner_has_the_cpusets_is_scored_as_one_without_an_enforcer(asks, over_arrays):
    pod = want(**asks)
    powerless = NodeView("n0", "s", "1", XEON, yielded=Yielded(1, 2))
    able = NodeView("n1", "s", "1", XEON, yielded=Yielded(1, 3))
    candidates = candidates_of(pod, [powerless, able], [Kin(), Kin()])
    known = arrays(candidates, pod)
    assert known.sure.tolist() == [over_arrays, over_arrays]
    weighed = weigh(candidates, pod, known, candidates.live(60.0), Faults())
    assert (weighed.score > 0).tolist() == [False, True]
    assert candidates.current(60.0).tolist() == [False, True], "nobody is refused what nobody places there"


@pytest.mark.parametrize(
    "asks",
    [
        pytest.param({"cpu": "2"}, id="shared"),
        pytest.param({"cpus": "exclusive", "cpu": "2"}, id="own"),
        pytest.param({"cpus": "exclusive-cores", "cpu": "2"}, id="own-cores"),
        pytest.param({"cpus_of_main": "exclusive", "cpu": "2", "beside": (SIDECAR,)}, id="own-beside-a-sidecar"),
        pytest.param({"cpus_of_main": "exclusive-cores", "cpu": "3", "beside": (SIDECAR,)}, id="own-rounded-up"),
        pytest.param({"scope": "container", "cpus": "exclusive"}, id="container-scope-of-one"),
        pytest.param({"scope": "container", "beside": (OTHER,)}, id="containers-one-by-one"),
    ],
)
def test_the_common_pods_are_weighed_over_arrays_alone(asks):
    pod, empty = want(**asks), NodeView("n", "s", "1", XEON)
    assert arrays(candidates_of(pod, [empty], [Kin(elsewhere=3.0)]), pod).sure.all()


def test_nodes_on_which_a_pod_would_spread_are_decided_so_many_at_a_time():
    """What is left over is decided for its next replica: what was decided is remembered."""
    count = MOST_DECIDED + 20
    nodes = [NodeView(f"n{at}", "s", "1", XEON) for at in range(count)]
    wide = str(len(XEON.numa_nodes[0].cpus) + 1)
    pods = [want(uid, cpu=wide) for uid in ("one", "two")]
    candidates = candidates_of(pods[0], nodes, [Kin()] * count)
    first, second = (weigh(candidates, pod, arrays(candidates, pod), candidates.placing, Faults()) for pod in pods)
    assert np.count_nonzero(first.score) == MOST_DECIDED
    assert np.count_nonzero(second.score) == count


NAMES = ("n0", "n1", "n2")

CHANGES = st.lists(
    st.one_of(st.sampled_from(NAMES).flatmap(views), st.tuples(st.just("drop"), st.sampled_from(NAMES))), max_size=3
)


@settings(max_examples=examples.of(100), deadline=None)
@given(
    st.lists(st.tuples(CHANGES, st.permutations(NAMES), st.sampled_from(ASKED), st.sets(st.sampled_from(NAMES)), ROOMS))
)
def test_what_was_kept_for_pods_alike_is_what_would_be_worked_out_now(rounds):
    """Whatever the nodes became in between, and whoever has kin where."""
    with patch.object(store, "FEW", 0):
        nodes, of_all = {}, ColumnStore()
        for number, (changes, names, asks, near, room_milli) in enumerate(rounds):
            for change in changes:
                match change:
                    case ("drop", name):
                        nodes.pop(name, None)
                        of_all.drop(name)
                    case view:
                        nodes[view.name] = view
                        of_all.put(view)
            pod = want(f"p{number}", **asks)
            kins = Kins(Kin(room_milli=room_milli), {name: Kin({"n0-0": 1.0}, room_milli=room_milli) for name in near})
            known, anew = (
                over_arrays(candidates, pod, KinShares(), Faults())
                for candidates in (asked(of_all, pod, names, kins), asked(store_of(nodes.values()), pod, names, kins))
            )
            candidates = asked(of_all, pod, names, kins)
            if candidates.weighing is not None:
                of_all.keep(candidates, candidates.weighing, known.rows)
            assert known.sure.tolist() == anew.sure.tolist()
            for mine, its in ((known.score, anew.score), (known.kin, anew.kin), (known.homes, anew.homes)):
                assert mine is its or mine[anew.sure].tolist() == its[anew.sure].tolist()
            if anew.following is not None:
                assert known.following[anew.sure].tolist() == anew.following[anew.sure].tolist()


def test_of_pods_alike_only_changed_nodes_and_those_with_kin_are_weighed_anew():
    with patch.object(store, "FEW", 0):
        nodes = store_of([NodeView(name, "s", "1", XEON) for name in NAMES])
        first, second = want("one"), want("two")
        candidates = asked(nodes, first, NAMES, Kins())
        assert candidates.weighing.anew.tolist() == [0, 1, 2]
        known = over_arrays(candidates, first, KinShares(), Faults())
        nodes.keep(candidates, candidates.weighing, known.rows)
        assert asked(nodes, second, NAMES, Kins()).weighing.anew.tolist() == []
        nodes.put(NodeView("n1", "s", "2", XEON))
        assert asked(nodes, second, NAMES, Kins()).weighing.anew.tolist() == [1]
        begun = asked(nodes, second, NAMES, Kins(near={"n0": Kin()}))
        assert begun.weighing.anew.tolist() == [0, 1, 2], "where a group has begun something else is asked"
