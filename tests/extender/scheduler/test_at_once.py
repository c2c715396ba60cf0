"""Scores that take little need no thread; an answer that would wait, or takes long, is a thread's."""

from __future__ import annotations

import pytest

from extender.scheduler import wire
from extender.scoring.weighing import MOST_CELLS_AT_ONCE, MOST_DECIDED_AT_ONCE
from extender.settings import Settings
from extender.state.pods import Changes
from lab.standins.patience import PATIENCE_S
from tests.extender.running import reservation
from tests.extender.scheduler.calling import NAMES, Site, body, scores
from tests.extender.told import reservations_of, tell


@pytest.mark.parametrize("cpus", ["shared", "exclusive"])
def test_scores_of_few_nodes_need_no_thread_and_are_what_a_thread_answers(cpus: str):
    request = body(cpus=cpus)
    answered = Site().ready(request)
    assert answered == scores(Site().prioritize(request).body)
    assert answered["a"] > answered["b"] > 0


def test_room_is_held_without_filter_having_been_asked():
    site = Site()
    site.ready(body())
    assert [*reservations_of(site.cluster, "a")] == ["kin", "p"]


def test_a_pod_that_has_not_opted_in_but_says_the_words_has_no_scores():
    assert Site().ready(body().replace(b"group.numakin.io", b"my.group.numakin.io")) == {}


def test_a_pod_that_the_watch_has_not_shown_is_never_waited_for_there():
    """A wait of the event loop would be one of all who ask."""
    site = Site(Settings(patience=PATIENCE_S))
    site.cluster.apply_pods(Changes(whole=True))
    assert site.ready(body()) is None
    site.cluster.apply_pods(Changes(rows=(wire.arguments(body()).pod,)))
    assert site.ready(body())
    assert [*reservations_of(site.cluster, "a")] == ["kin", "p"]


def test_nor_is_what_is_expected_of_its_workload():
    site, waited = Site(), []
    site.cluster.wait.asked = lambda _row, longest_s: waited.append(longest_s)
    site.cluster.wait.awaits = lambda _row, _longest_s: True
    assert site.ready(body()) is None
    assert waited == []
    site.cluster.wait.awaits = lambda _row, _longest_s: False
    assert site.ready(body())
    assert waited == [0.0], "it is told of the pod, and may not wait"


def test_many_nodes_are_a_threads_work_until_they_were_weighed_for_a_pod_alike():
    site, many = Site(), [f"n{number}" for number in range(MOST_CELLS_AT_ONCE // 2)]
    assert site.ready(body("p", *many[:-2], *NAMES))
    assert site.ready(body("p", *many, *NAMES)) is None
    answered = scores(site.prioritize(body("p", *many, *NAMES)).body)
    assert answered["a"] > answered["b"] > 0
    assert site.ready(body("q", *many, *NAMES))["a"]
    assert site.ready(body("q", *many, *NAMES, cpus="exclusive")) is None


def test_what_a_thread_has_answered_is_held_and_told_once_the_answer_is_sent(capsys: pytest.CaptureFixture[str]):
    """An answer waits for no more than it says."""
    site, many = Site(), [f"n{number}" for number in range(MOST_CELLS_AT_ONCE)]
    answer = site.prioritize(body("p", *many, *NAMES))
    assert "scored" not in capsys.readouterr().out
    answer.after()
    assert "scored" in capsys.readouterr().out
    assert [*reservations_of(site.cluster, "a")] == ["kin", "p"]


def test_decisions_that_arrays_do_not_cover_are_a_threads_work_where_they_are_many():
    """Twelve of a machine's sixteen CPUs fit on no NUMA node alone."""
    site, request = Site(), body().replace(b'"cpu": "6"', b'"cpu": "12"')
    assert site.ready(request)
    more = [f"n{number}" for number in range(MOST_DECIDED_AT_ONCE)]
    for name in more:
        tell(site.cluster, name)
    request = request.replace(b'["a", "b"]', str([*more, "b"]).replace("'", '"').encode())
    assert site.ready(request) is None
    assert scores(site.prioritize(request).body)["b"]


STRICT = {"policy": "single-numa-node"}


def test_a_filter_that_refuses_no_node_needs_no_thread_and_prioritize_goes_on_from_it():
    site = Site(refuse=True)
    assert site.left(body(**STRICT)) == ["a", "b"]
    assert site.ready(body(**STRICT)) == scores(Site(refuse=True).prioritize(body(**STRICT)).body)


@pytest.mark.parametrize("annotations", [{}, {"policy": "best-effort"}])
def test_nor_does_one_for_a_pod_to_which_no_node_can_be_refused(annotations: dict[str, str]):
    site = Site(refuse=True)
    for name in NAMES:
        tell(site.cluster, name, *(reservation(f"{name}{node}", node, milli=8000) for node in "01"))
    assert site.left(body(**annotations)) == ["a", "b"]


def test_where_a_node_may_be_refused_a_thread_finds_out_by_nodes_as_they_are():
    site = Site(refuse=True)
    assert site.left(body(**STRICT)) == ["a", "b"]
    tell(site.cluster, "b", *(reservation(f"other{node}", node, milli=8000) for node in "01"))
    assert site.left(body(**STRICT)) is None
    assert site.filter(body(**STRICT)) == ["a"]
    tell(site.cluster, "b")
    assert site.filter(body(**STRICT)) == ["a", "b"]


def test_a_filter_of_one_node_is_a_threads_work_and_holds_nothing():
    """kube-scheduler asks for no score then, and a gang's room is held for the gang."""
    site = Site(refuse=True)
    assert site.left(body("p", "b", **STRICT)) is None
    assert site.filter(body("p", "b", **STRICT)) == ["b"]
    assert [*reservations_of(site.cluster, "b")] == []


def test_a_strict_pod_that_the_watch_has_not_shown_is_never_waited_for_there():
    site = Site(Settings(patience=PATIENCE_S), refuse=True)
    site.cluster.apply_pods(Changes(whole=True))
    assert site.left(body(**STRICT)) is None


def test_a_bad_request_is_answered_as_one():
    site = Site()
    answer = site.prioritize.at_once(body().replace(b'"1Gi"', b'"lots"'))
    assert answer is not None
    assert answer.status == 400
