"""Filter is answered first, and what prioritize will ask is worked out before it is asked."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from extender.state.group_spec import GroupSpec
from extender.state.pods import Changes
from numakin.placement.optin.options import Defaults, Policy
from tests.extender.machines import want
from tests.extender.running import Extender, machine, recorded, reservation
from tests.extender.scheduler.calling import NAMES, Site, body
from tests.extender.told import other, reservations_of, tell

STRICT = {"policy": "single-numa-node"}


@pytest.fixture(params=[False, True], ids=["scoring", "refusing"])
def site(request: pytest.FixtureRequest) -> Site:
    return Site(refuse=request.param)


@pytest.mark.parametrize("policy", ["best-effort", "restricted"])
@pytest.mark.parametrize("cpus", ["shared", "exclusive"])
def test_scores_after_filter_are_what_prioritize_alone_gives(site: Site, policy: str, cpus: str):
    request = body(policy=policy, cpus=cpus)
    alone = Site().scores(request)
    assert alone["a"] > alone["b"] > 0
    assert site.filter(request) == ["a", "b"]
    assert site.scores(request) == alone


def test_what_was_worked_out_is_not_worked_out_again(site: Site, monkeypatch: pytest.MonkeyPatch):
    prepared, times = site.cluster.prepared, []
    monkeypatch.setattr(site.cluster, "prepared", lambda *asked: times.append(1) or prepared(*asked))
    site.filter(body())
    assert site.scores(body())
    assert times == [1]
    site.filter(body("q"))
    site.reconnect()
    assert site.scores(body("q")), "though it comes on another connection"


def test_room_is_held_with_the_scores_and_not_before(site: Site):
    site.filter(body())
    assert [*reservations_of(site.cluster, "a")] == ["kin"]
    site.call("prioritize", body())
    assert [*reservations_of(site.cluster, "a")] == ["kin", "p"]


def test_room_is_held_without_filter_having_been_asked():
    site = Site()
    site.call("prioritize", body())
    assert [*reservations_of(site.cluster, "a")] == ["kin", "p"]


def test_who_asks_again_is_answered_alike(site: Site):
    site.filter(body())
    first = site.scores(body())
    assert site.scores(body()) == first


def test_scores_of_before_a_place_was_taken_are_not_given(site: Site):
    """The other pod takes the place on a that the first would have had."""
    site.filter(body())
    site.cluster.score(want("other", cpu="6"), NAMES)
    assert site.scores(body())
    homes = reservations_of(site.cluster, "a")
    assert homes["p"] != homes["other"]


def test_the_next_try_of_a_pod_asks_for_what_its_groups_object_says_by_then():
    """By the same bytes: the pod itself has not changed. No NUMA node has six CPUs left."""
    site = Site(refuse=True)
    for node in NAMES:
        tell(site.cluster, node, other(0, 4_000), other(1, 4_000))
    assert site.filter(body()) == ["a", "b"]
    site.cluster.set_group_specs({"default/shop": GroupSpec(Defaults(Policy.SINGLE_NUMA_NODE))})
    assert site.filter(body()) == []


@pytest.mark.parametrize("first", ["filter", "prioritize"])
def test_the_next_try_of_a_pod_counts_as_what_its_workload_is_known_to_use_by_then(first: str):
    site = Site()
    for verb in (first, "prioritize"):
        site.call(verb, body())
    known = replace(site.cluster.known, uses={"default/Pod/p": 7_000})
    site.cluster.learned(known)
    for verb in (first, "prioritize"):
        site.call(verb, body())
    (assumed,) = site.cluster.picture().assumed
    assert assumed.reservations[0].demand.expected_milli == 7_000


def test_other_nodes_or_another_pod_are_weighed_when_they_are_asked_for(site: Site):
    site.filter(body())
    for request in (body("p", "b", "a"), body("q")):
        assert site.scores(request)["a"]


def test_a_filter_call_that_leaves_one_node_holds_nothing_there(site: Site):
    assert site.filter(body("p", "b")) == ["b"]
    assert [*reservations_of(site.cluster, "b")] == []


def test_a_filter_of_one_node_holds_nothing_there_for_a_strict_pod_either():
    site = Site(refuse=True)
    assert site.filter(body("p", "b", **STRICT)) == ["b"]
    assert [*reservations_of(site.cluster, "b")] == []


def test_a_pod_that_is_filtered_again_has_given_its_former_place_back(site: Site):
    site.filter(body())
    site.scores(body())
    assert [*reservations_of(site.cluster, "a")] == ["kin", "p"]
    site.filter(body())
    assert [*reservations_of(site.cluster, "a")] == ["kin"]


@pytest.mark.parametrize("annotations", [{}, {"policy": "best-effort"}])
def test_no_node_is_refused_to_a_pod_that_does_not_ask_for_it(annotations: dict[str, str]):
    site = Site(refuse=True)
    for name in NAMES:
        tell(site.cluster, name, *(reservation(f"{name}{node}", node, milli=8000) for node in "01"))
    assert site.filter(body(**annotations)) == ["a", "b"]


def test_nodes_are_refused_by_what_they_are_at_each_filter():
    site = Site(refuse=True)
    assert site.filter(body(**STRICT)) == ["a", "b"]
    tell(site.cluster, "b", *(reservation(f"other{node}", node, milli=8000) for node in "01"))
    assert site.filter(body(**STRICT)) == ["a"]
    tell(site.cluster, "b")
    assert site.filter(body(**STRICT)) == ["a", "b"]


def test_a_pod_that_has_not_opted_in_but_says_the_words_has_no_scores(site: Site):
    assert site.scores(body().replace(b"group.numakin.io", b"my.group.numakin.io")) == {}


def test_a_bad_request_is_named_to_who_asks_for_scores():
    site, request = Site(), body().replace(b'"1Gi"', b'"lots"')
    assert site.filter(request) == ["a", "b"]
    answer = site.call("prioritize", request)
    assert (answer.status, json.loads(answer.body)) == (400, {"error": "'lots' is not a resource quantity"})


def test_each_pod_is_told_of_once_its_answer_is_sent(caplog: pytest.LogCaptureFixture):
    """An answer waits for no more than it says."""
    caplog.set_level("INFO")
    answer = Site().call("prioritize", body())
    assert "scored" not in caplog.text
    answer.after()
    assert "scored" in caplog.text


def test_a_pod_that_the_watch_has_not_shown_holds_no_room():
    site = Site()
    site.cluster.apply_pods(Changes(whole=True))
    assert site.scores(body())["a"]
    assert [*reservations_of(site.cluster, "a")] == ["kin"]


def test_over_the_port_scores_after_filter_are_those_without_it(extender: Extender):
    extender.enforcer("n2").report(machine(), reservation("kin", "1"))
    extender.enforcer("n3").report(machine())
    request = recorded("basic-nodecache-true.prioritize", opted_in=True)
    assert extender.post("filter", request)["NodeNames"] == ["n1", "n2", "n3"]
    first = extender.scores(request)
    assert first["n2"] > first["n3"] > 0
    assert extender.scores(request) == first


def test_what_filter_has_read_is_not_taken_for_another_call():
    site = Site()
    plain = body("p").replace(b"group.numakin.io", b"other.example.org")
    assert site.filter(plain) == list(NAMES)
    assert site.scores(plain) == {}, "a pod that has not opted in"
    assert site.call("prioritize", plain[:-1]).status == 400
