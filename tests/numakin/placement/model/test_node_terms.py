"""What a pod says of nodes, read; which nodes it may go to is told in tests/numakin/kubectl/test_feasible.py."""

from __future__ import annotations

import pytest

from numakin.placement.model.errors import BadTerms
from numakin.placement.model.node_terms import NO_TERMS, NodeTerms, Taint


def required(*expressions: dict) -> dict:
    return {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}


@pytest.mark.parametrize("nothing", [(None, None, None), ({}, {}, [])], ids=["left out", "empty"])
def test_who_says_nothing_may_go_to_any_node_without_taints(nothing):
    terms = NodeTerms.of(*nothing)
    assert terms == NO_TERMS
    assert terms.admits("a", {"zone": "x"}, ())
    assert not terms.admits("a", {}, (Taint("gpu", "", "NoExecute"),))


def test_one_term_of_several_is_enough():
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "xy"]
    read = NodeTerms.of(None, {"nodeSelectorTerms": terms}, None)
    assert [read.admits("a", {"zone": zone}, ()) for zone in "xyz"] == [True, True, False]


@pytest.mark.parametrize("text", [" 9", "9_0", "0x9", "\u0669", ""])
def test_what_is_no_number_to_kubernetes_compares_with_none(text):
    read = NodeTerms.of(None, required({"key": "cores", "operator": "Gt", "values": ["1"]}), None)
    assert not read.admits("a", {"cores": text}, ())


@pytest.mark.parametrize("bound", ["-9223372036854775809", "1" * 20, "-" + "1" * 5000])
def test_no_label_compares_with_a_bound_that_is_too_long_for_kubernetes(bound):
    read = [
        NodeTerms.of(None, required({"key": "cores", "operator": each, "values": [bound]}), None)
        for each in ("Gt", "Lt")
    ]
    assert not any(terms.admits("a", {"cores": "8"}, ()) for terms in read)


def test_zeros_before_a_number_make_no_difference():
    read = NodeTerms.of(None, required({"key": "cores", "operator": "Gt", "values": ["0" * 5000 + "7"]}), None)
    assert [read.admits("a", {"cores": cores}, ()) for cores in ("007", "008")] == [False, True]


def test_those_who_say_the_same_are_equal():
    one, other = (NodeTerms.of(dict(rows), None, None) for rows in ([("a", "1"), ("b", "2")], [("b", "2"), ("a", "1")]))
    assert (one, hash(one)) == (other, hash(other))


WRONG = {
    "an operator that is not known": (None, required({"key": "a", "operator": "Near"}), None),
    "a toleration's that is not known": (None, None, [{"key": "a", "operator": "Lt", "value": "1"}]),
    "a number for a text": ({"disk": 1}, None, None),
    "a list of lists": (None, required({"key": "a", "operator": "In", "values": [["b"]]}), None),
    "a list for an object": (None, [1], None),
    "a number for a list": (None, None, 1),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_can_t_be_read_is_refused(case):
    with pytest.raises(BadTerms):
        NodeTerms.of(*WRONG[case])
