"""What was learned survives the program: written into a group's status, and read by the next extender."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.state.pods import Changes
from extender.traffic.known import TrafficLearning
from extender.traffic.learned import MOST_READ, NOTHING, LearnedGroup, by_group, read, written
from numakin.placement.traffic.graph import KINDS, Amount, Costs, Graph, Key
from tests.extender.traffic.talking import flow, pod

COSTS = Costs()
CART, REDIS, WEB = (f"shop/Deployment/{name}" for name in ("cart", "redis", "web"))
names = st.from_regex(r"[a-z]{1,5}/[A-Z][a-z]{0,9}/[a-z][-a-z0-9]{0,20}[a-z0-9]", fullmatch=True)
rates = st.builds(Amount, st.floats(0, 1e12), st.floats(0, 1e9))
learned = st.builds(
    LearnedGroup,
    st.lists(names, max_size=5, unique=True).map(tuple),
    st.dictionaries(st.builds(Key, names, names, st.sampled_from(KINDS)), rates, max_size=20),
    st.dictionaries(names, st.integers(1, 64_000), max_size=5),
)


@given(learned)
def test_what_is_written_is_read_again(first):
    back = read(written(first, COSTS), "shop/orders")
    assert (back.members, back.uses) == (first.members, first.uses)
    assert back.edges == {
        key: Amount(pytest.approx(rate.bytes, rel=1e-3), pytest.approx(rate.messages, rel=1e-3))
        for key, rate in first.edges.items()
    }


@given(learned)
def test_writing_again_what_was_read_changes_nothing(first):
    """Else a group's status would be written at each look."""
    text = written(first, COSTS)
    assert read(written(read(text, ""), COSTS), "") == read(text, "")


@given(learned, st.integers(0, 2000))
def test_a_text_keeps_its_bound_and_drops_the_lightest(first, most):
    text = written(first, COSTS, most)
    assert len(text.encode()) <= most
    kept = read(text, "").edges
    dropped = first.edges.keys() - kept.keys()
    weight = {key: COSTS.weight(key.kind, rate) for key, rate in first.edges.items()}
    assert all(weight[light] <= weight[heavy] for light in dropped for heavy in kept)


def test_a_large_cluster_fits_a_status():
    edges = {
        Key(f"namespace/Deployment/service-{a}", f"namespace/Deployment/service-{b}", "tcp"): Amount(1e6 / (a + 1), 1e3)
        for a in range(100)
        for b in range(100)
    }
    text = written(LearnedGroup((), edges), COSTS)
    assert 60_000 < len(text) <= 65_536
    assert len(read(text, "").edges) > 2000


GOOD = '{"version":1,"names":["s/D/a","s/D/b"],"members":[0],"edges":[[0,1,"tcp",1,2]]}'


def test_the_form_is_what_the_docs_say():
    first = LearnedGroup(("s/D/a",), {Key("s/D/a", "s/D/b", "tcp"): Amount(1.00001, 2.0)})
    assert written(first, COSTS) == GOOD
    assert written(NOTHING, COSTS) == ""
    assert read("", "shop/orders") == NOTHING


def changed(**fields) -> str:
    return json.dumps({**json.loads(GOOD), **fields})


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        "[]",
        "{}",
        "null",
        GOOD[:-1],
        "[" * 100_000,
        changed(version=2),
        changed(version="1"),
        changed(names=["s/D/a", 7]),
        changed(names=["s/D/a", "x" * 500]),
        changed(names=["s/D/a", "s/D/b/../c"]),
        changed(names=["s/D/a", "s/D/b\n"]),
        changed(members=[2]),
        changed(members=[-1]),
        changed(members=["a"]),
        changed(edges=[[0, 1, "tcp", 1]]),
        changed(edges=[[0, 2, "tcp", 1, 2]]),
        changed(edges=[[0, -1, "tcp", 1, 2]]),
        changed(edges=[[0, 1, "smoke", 1, 2]]),
        changed(edges=[[0, 1, "tcp", -1, 2]]),
        changed(edges=[[0, 1, "tcp", float("nan"), 2]]),
        changed(edges=[[0, 1, "tcp", 1e308, 2]]),
        changed(edges=[[0, 1, "tcp", 10**400, 2]]),
        changed(edges=7),
        GOOD + " " * MOST_READ,
    ],
)
def test_what_can_t_be_read_is_ignored_with_a_warning(text, caplog):
    assert read(text, "shop/orders") == NOTHING
    logs = [(record.levelname.lower(), record.fields["where"]) for record in caplog.records]
    assert logs == [("warning", "shop/orders")]


@given(st.text() | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_nothing_that_is_read_can_fail(text):
    assert isinstance(read(text, ""), LearnedGroup)


def test_each_edge_is_written_with_one_group():
    edges = {
        Key(CART, REDIS, "tcp"): Amount(1, 1),
        Key(REDIS, WEB, "tcp"): Amount(2, 2),
        Key(WEB, CART, "tcp"): Amount(3, 3),
    }
    made = by_group(Graph(edges), {CART: "", REDIS: "shop/stores", WEB: ""}, {CART: "shop/auto-cart"})
    assert made == {
        "shop/auto-cart": LearnedGroup((CART,), {key: edges[key] for key in edges if key.source in {CART, WEB}}),
        "shop/stores": LearnedGroup((), {Key(REDIS, WEB, "tcp"): Amount(2, 2)}),
    }


def test_a_new_extender_knows_what_the_last_one_learned():
    """From the first pod on, and by the same group's name, though other workloads are heavier by now."""
    rows = (pod("cart-1", "cart", node="a"), pod("redis-1", "redis", node="a"), pod("web-1", "web", node="a"))
    last = TrafficLearning()
    last.apply(Changes(rows=rows, whole=True), 0.0)
    last.receive("a", [flow("cart-1", "redis-1", 90_000, 900), flow("cart-1", "web-1", 50_000, 500)], 0.0)
    before = last.known(0.0)
    texts = {group: written(entry, before.graph.costs) for group, entry in before.lasting().items()}
    assert list(texts) == ["shop/auto-cart"]

    new = TrafficLearning()
    for group, text in texts.items():
        new.restored(group, read(text, group), 5.0)
    new.apply(Changes(rows=rows, whole=True), 6.0)
    new.receive("a", [flow("redis-1", "web-1", 9_000_000, 9)], 7.0)
    after = new.known(8.0)
    assert after.groups == before.groups
    assert after.peers[CART] == {
        REDIS: pytest.approx(before.peers[CART][REDIS], rel=0.01),
        WEB: pytest.approx(before.peers[CART][WEB], rel=0.01),
    }


def test_what_a_workload_uses_is_written_with_its_group_and_known_to_the_next_extender():
    before, after = TrafficLearning(), TrafficLearning()
    before.apply(Changes(rows=(pod("cart-1", "cart", group="orders"),)), 0.0)
    before.used("n1", {CART: 1500, "bank/Deployment/ledger": 9000}, 0.0)
    for group, learned_of in before.known(1.0).lasting().items():
        after.restored(group, read(written(learned_of, COSTS), group), 0.0)
    assert after.known(1.0).uses == {CART: 1500}


def test_no_group_says_what_other_namespaces_use():
    learning = TrafficLearning()
    learning.restored("shop/orders", LearnedGroup(uses={"bank/Deployment/ledger": 9000, CART: 200}), 0.0)
    assert learning.known(1.0).uses == {CART: 200}


@pytest.mark.parametrize("use", ["[0]", "[0,0]", "[0,-5]", "[9,5]", '[0,"5"]', "7", "[0,1e99]"])
def test_a_use_that_is_none_leaves_the_text_unread(use):
    assert read(f'{{"version":1,"names":["{CART}"],"members":[],"edges":[],"uses":[{use}]}}', "here") == NOTHING


def test_a_text_of_before_there_were_uses_is_read():
    assert read(f'{{"version":1,"names":["{CART}"],"members":[0],"edges":[]}}', "here") == LearnedGroup((CART,))
