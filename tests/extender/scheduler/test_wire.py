"""The extender/v1 wire, fed with what a real kube-scheduler sent."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.scheduler import wire
from extender.scheduler.pod_body import BadRequest
from extender.scheduler.wire import FilterRefusals, Victims
from tests.extender.running import GIB, recorded

POD = '{"metadata":{"name":"a","namespace":"b"},"spec":{}}'


def test_names_are_read_in_their_order():
    asked = wire.arguments(recorded("complex-pod-nodecache-true.filter"))
    assert asked.names == ("n1", "n3", "n2")
    assert asked.items is None


def test_a_pods_demand_counts_init_containers_sidecars_and_limits():
    pod = wire.arguments(recorded("complex-pod-nodecache-true.filter")).pod
    assert [(container.name, container.init, container.restartable) for container in pod.containers] == [
        ("migrate", True, False),
        ("proxy", True, True),
        ("db", False, False),
        ("agent", False, False),
        ("nolimits", False, False),
        ("limonly", False, False),
    ]
    assert pod.demand.cpu_milli == 250 + 2000 + 100 + 500
    assert pod.demand.memory == (64 << 20) + 4 * GIB + (128 << 20) + 500_000_000


def test_node_objects_come_back_byte_for_byte():
    body = recorded("basic-nodecache-false.filter")
    answer = wire.filter_answer(wire.arguments(body), FilterRefusals(failed={"n3": "no"}))
    asked = json.loads(body)["Nodes"]["items"]
    answered = json.loads(answer)
    assert answered["Nodes"]["items"] == [item for item in asked if item["metadata"]["name"] != "n3"]
    assert answered["NodeNames"] is None
    first = json.dumps(asked[0], separators=(",", ":")).encode()
    assert first in body
    assert first in answer


def test_filter_answers_in_names_when_asked_in_names():
    asked = wire.arguments(recorded("basic-nodecache-true.filter"))
    refusals = FilterRefusals(failed={"n1": "full"}, hopeless={"n2": "too small"})
    assert json.loads(wire.filter_answer(asked, refusals)) == {
        "Nodes": None,
        "NodeNames": ["n3"],
        "FailedNodes": {"n1": "full"},
        "FailedAndUnresolvableNodes": {"n2": "too small"},
        "Error": "",
    }


def test_scores_are_written_as_integers():
    assert wire.prioritize_answer(["n1", "n2"], [10, 0]) == b'[{"Host":"n1","Score":10},{"Host":"n2","Score":0}]'


@pytest.mark.parametrize("form", ["nodecache-true", "nodecache-false"])
def test_victims_are_read_by_uid_or_as_whole_pods_and_answered_by_uid(form):
    asked = wire.preempt_arguments(recorded(f"{form}.preempt"))
    assert {node: len(victim.pods) for node, victim in asked.victims.items()} == {"n1": 2, "n2": 2, "n3": 2}
    first = json.loads(wire.preempt_answer({"n1": Victims(("u1",), 1)}))
    assert first == {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u1"}], "NumPDBViolations": 1}}}


@pytest.mark.parametrize("key", ["NodeNames", "nodenames", "nodeNames", "NODENAMES"])
def test_top_level_keys_are_read_in_any_case(key):
    assert wire.arguments(f'{{"pOd":{POD},"{key}":["n1"]}}'.encode()).names == ("n1",)


def test_a_snake_case_key_is_not_the_key():
    with pytest.raises(BadRequest, match="neither NodeNames nor Nodes"):
        wire.arguments(f'{{"Pod":{POD},"node_names":["n1"]}}'.encode())


def test_explicit_nulls_count_as_absent():
    body = f'{{"Pod":{POD},"Nodes":null,"NodeNames":[],"Other":{{"x":[1]}}}}'
    assert wire.arguments(body.encode()).names == ()
    pod = '{"metadata":{"name":"a","labels":null,"annotations":null},"spec":{"containers":null,"initContainers":null}}'
    assert wire.arguments(f'{{"Pod":{pod},"NodeNames":["n1"]}}'.encode()).pod.containers == ()


def test_a_quantity_may_be_a_number():
    pod = '{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":2}}}]}}'
    assert wire.arguments(f'{{"Pod":{pod},"NodeNames":["n1"]}}'.encode()).pod.demand.cpu_milli == 2000


BAD = [
    ("", "the request is not JSON: Input data was truncated"),
    ("{", "the request is not JSON: Input data was truncated"),
    ('{"Pod":', "the request is not JSON: Input data was truncated"),
    ("nonsense", "the request is not JSON: JSON is malformed: invalid character (byte 4)"),
    ("[]", "the request is not a JSON object: Expected `object`, got `array`"),
    ("null", "the request is not a JSON object: Expected `object`, got `null`"),
    ("{}", "the request has no Pod"),
    ('{"Pod":null,"NodeNames":[]}', "Pod: Expected `object`, got `null`"),
    ('{"Pod":{},"NodeNames":[]}', "Pod: Object missing required field `metadata`"),
    ('{"Pod":{"metadata":{"name":7},"spec":{}},"NodeNames":[]}', "Pod.metadata.name: Expected `str`, got `int`"),
    (
        '{"Pod":{"metadata":{"annotations":{"a":true}},"spec":{}},"NodeNames":[]}',
        "Pod.metadata.annotations[...]: Expected `str`, got `bool`",
    ),
    (
        '{"Pod":{"metadata":{},"spec":{}},"NodeNames":[]}',
        "Pod.metadata.name: '' is no name that the API server takes",
    ),
    (
        '{"Pod":{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c"},3]}},"NodeNames":[]}',
        "Pod.spec.containers[1]: Expected `object`, got `int`",
    ),
    (f'{{"Pod":{POD}}}', "the request has neither NodeNames nor Nodes"),
    (f'{{"Pod":{POD},"NodeNames":null,"Nodes":null}}', "the request has neither NodeNames nor Nodes"),
    (f'{{"Pod":{POD},"NodeNames":"n1"}}', "NodeNames: Expected `array | null`, got `str`"),
    (f'{{"Pod":{POD},"NodeNames":["n1",2]}}', "NodeNames[1]: Expected `str`, got `int`"),
    (f'{{"Pod":{POD},"NodeNames":["n1",""]}}', "NodeNames[1]: '' is no name that the API server takes"),
    (
        f'{{"Pod":{POD},"NodeNames":["{"n" * 254}"]}}',
        f"NodeNames[0]: {'n' * 40!r} is no name that the API server takes",
    ),
    (f'{{"Pod":{POD},"Nodes":{{"items":[{{}}]}}}}', "Nodes.items[0]: Object missing required field `metadata`"),
    (
        f'{{"Pod":{POD},"Nodes":{{"items":[{{"metadata":{{"name":1}}}}]}}}}',
        "Nodes.items[0].metadata.name: Expected `str`, got `int`",
    ),
    (f'{{"Pod":{POD},"Nodes":[]}}', "Nodes: Expected `object`, got `array`"),
]


@pytest.mark.parametrize(("body", "text"), BAD, ids=[body[:60] or "empty" for body, _ in BAD])
def test_a_bad_body_is_refused_with_the_path_and_what_is_wrong_there(body, text):
    with pytest.raises(BadRequest) as caught:
        wire.arguments(body.encode())
    assert str(caught.value) == text


@pytest.mark.parametrize("body", ['{"Pod":' + '{"a":' * 100_000, '{"x":' + "[" * 100_000])
def test_endless_nesting_is_refused_like_any_bad_json(body):
    with pytest.raises(BadRequest, match="the request is not JSON: it is nested too deeply"):
        wire.arguments(body.encode())


BAD_PREEMPT = [
    (f'{{"Pod":{POD}}}', "the request has neither NodeNameToMetaVictims nor NodeNameToVictims"),
    (
        f'{{"Pod":{POD},"NodeNameToMetaVictims":{{"n1":{{"Pods":[{{"UID":1}}]}}}}}}',
        "NodeNameToMetaVictims.n1.Pods[0].UID: Expected `str`, got `int`",
    ),
    (
        f'{{"Pod":{POD},"NodeNameToVictims":{{"n1":{{"pods":[{{"metadata":{{}}}}]}}}}}}',
        "NodeNameToVictims.n1.Pods[0].metadata: Object missing required field `uid`",
    ),
]


@pytest.mark.parametrize(("body", "text"), BAD_PREEMPT, ids=["neither", "uid", "pod"])
def test_a_bad_preempt_body_is_refused_likewise(body, text):
    with pytest.raises(BadRequest) as caught:
        wire.preempt_arguments(body.encode())
    assert str(caught.value) == text


def test_more_nodes_than_the_bound_are_refused_by_it():
    names = json.dumps([f"n{number}" for number in range(wire.NODES + 1)])
    with pytest.raises(BadRequest, match="NodeNames: 20001 nodes are over the bound of 20000"):
        wire.arguments(f'{{"Pod":{POD},"NodeNames":{names}}}'.encode())


KEYS = st.sampled_from(["metadata", "name", "spec", "containers", "items", "annotations", "pods", "UID", "n1", ""])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | KEYS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["Pod", "Nodes", "NodeNames", "NodeNameToVictims"]), JSON_VALUES))
def test_any_json_is_an_answer_or_a_bad_request(value):
    for read in (wire.arguments, wire.preempt_arguments):
        with suppress(BadRequest):
            read(json.dumps(value).encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_a_bad_request(body):
    for read in (wire.arguments, wire.preempt_arguments):
        with suppress(BadRequest):
            read(body)


class TestPlainCalls:
    """Of pods that can't have opted in: their names of nodes are handed back as they were written."""

    BODY = b'{"Pod":{"metadata":{"name":"p"}},"Nodes":null,"NodeNames":["a","b"]}'

    def test_one_with_the_annotations_key_anywhere_is_not_plain(self):
        assert wire.plain(self.BODY)
        assert not wire.plain(self.BODY.replace(b'"p"', b'"p","annotations":{"group.numakin.io/container.x":"y"}'))

    def test_every_node_is_what_decoding_would_have_answered(self):
        asked = wire.arguments(recorded("basic-nodecache-true.filter"))
        decoded = wire.filter_answer(asked, wire.FilterRefusals())
        assert json.loads(wire.every_node(recorded("basic-nodecache-true.filter"))) == json.loads(decoded)

    @pytest.mark.parametrize("answer", [wire.every_node, wire.no_scores])
    @pytest.mark.parametrize("body", [b"", b"[]", b'{"Pod":{}', b'{"NodeNames":["a"]}', b'{"Pod":{"metadata":{}}}'])
    def test_what_kube_scheduler_does_not_send_is_refused_all_the_same(self, answer, body):
        with pytest.raises(BadRequest):
            answer(body)
