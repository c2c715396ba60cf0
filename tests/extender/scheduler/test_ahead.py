"""Filter is answered first, and what prioritize will ask is worked out before it is asked."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from extender.scheduler.ahead import Ahead
from tests.extender.machines import want
from tests.extender.running import Extender, machine, recorded, reservation
from tests.extender.scheduler.calling import NAMES, Site, body, scores
from tests.extender.told import reservations_of


@pytest.fixture(params=[False, True], ids=["scoring", "refusing"])
def site(request: pytest.FixtureRequest) -> Site:
    return Site(refuse=request.param)


@pytest.mark.parametrize("policy", ["best-effort", "restricted"])
def test_scores_are_ready_when_they_are_asked_for_and_what_prioritize_alone_gives(site: Site, policy: str):
    request = body(policy=policy)
    alone = scores(Site().prioritize(request).body)
    assert alone["a"] > alone["b"] > 0
    assert site.filter(request) == ["a", "b"]
    assert site.ready(request) == alone


def test_room_is_held_once_scores_were_given_and_not_before(site: Site):
    site.filter(body())
    assert [*reservations_of(site.cluster, "a")] == ["kin"]
    assert site.ready(body())
    assert [*reservations_of(site.cluster, "a")] == ["kin", "p"]


def test_who_asks_again_is_answered_alike(site: Site):
    site.filter(body())
    first = site.ready(body())
    assert site.ready(body()) == first
    assert scores(site.prioritize(body()).body) == first


def test_scores_of_before_a_place_was_taken_are_not_given(site: Site):
    """The other pod takes the place on a that the first would have had."""
    site.filter(body())
    site.cluster.score(want("other", cpu="6"), NAMES)
    assert site.ready(body())
    homes = reservations_of(site.cluster, "a")
    assert homes["p"] != homes["other"]


def test_other_nodes_or_another_pod_are_weighed_when_they_are_asked_for(site: Site):
    site.filter(body())
    for request in (body("p", "b", "a"), body("q")):
        answered = site.ready(request)
        assert answered == scores(site.prioritize(request).body)
        assert answered["a"]


def test_a_filter_call_that_leaves_one_node_holds_nothing_there(site: Site):
    assert site.filter(body("p", "b")) == ["b"]
    assert [*reservations_of(site.cluster, "b")] == []


def test_a_pod_that_is_filtered_again_has_given_its_former_place_back(site: Site):
    site.filter(body())
    site.ready(body())
    assert [*reservations_of(site.cluster, "a")] == ["kin", "p"]
    site.filter(body())
    assert [*reservations_of(site.cluster, "a")] == ["kin"]


def test_a_bad_request_is_named_to_who_asks_for_scores():
    site, request = Site(), body().replace(b'"1Gi"', b'"lots"')
    assert site.filter(request) == ["a", "b"]
    answer = site.prioritize(request)
    assert (answer.status, json.loads(answer.body)) == (400, {"error": "'lots' is not a resource quantity"})


def test_who_comes_while_it_is_worked_out_waits_for_it():
    begun, go, times = Event(), Event(), []

    def work() -> str:
        times.append(1)
        begun.set()
        assert go.wait(60)
        return "scores"

    ahead = Ahead(b"", work)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(ahead.work)
        assert begun.wait(60)
        second = threads.submit(ahead.result)
        assert not ahead.done()
        go.set()
        first.result(60)
        assert second.result(60) == "scores"
    assert times == [1]


def test_what_went_wrong_ahead_is_raised_to_who_asks_and_to_nobody_else():
    def work() -> str:
        raise KeyError("a fault of ours")

    ahead = Ahead(b"", work)
    ahead.work()
    for _ in range(2):
        with pytest.raises(KeyError):
            ahead.result()


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
    assert site.ready(plain) == {}, "a pod that has not opted in"
    broken = site.prioritize.at_once(plain[:-1])
    assert broken is not None
    assert broken.status == 400
