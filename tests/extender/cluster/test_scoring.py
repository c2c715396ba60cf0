"""The two forms of the objective are one: arrays give what decide() gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.predict import predict
from extender.cluster.scoring import weigh
from placement.cpuset import NumaSet
from placement.decide import Kin
from tests.extender.cluster.machines import views, want

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
    {"scope": "container"},
]

KINS = st.builds(
    Kin,
    weights=st.dictionaries(st.sampled_from(["n0-0", "n1-1", "n2-2"]), st.sampled_from([0.5, 3.0]), max_size=2),
    elsewhere=st.sampled_from([0.0, 1.0, 7.5]),
    room_milli=st.sampled_from([0, 1, 2000]),
    planned=st.sampled_from(["", "", "0", "1"]).map(NumaSet.parse),
)


@settings(max_examples=100, deadline=None)
@given(st.tuples(*(views(f"n{at}") for at in range(3))), st.sampled_from(ASKED), st.tuples(KINS, KINS, KINS))
def test_every_score_is_the_score_of_the_decision(nodes, asked, kins):
    pod = want(**asked)
    found = weigh(nodes, pod, kins)
    for view, kin, one in zip(nodes, kins, found, strict=True):
        decision = predict(view.machine, view.occupancy, pod, kin)
        assert one.score == pytest.approx(decision.score, abs=1e-9)
        assert 0 <= one.kin <= 1 + 1e-9
