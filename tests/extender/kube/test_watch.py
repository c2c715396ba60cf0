"""The view follows the API server through everything that a list or a watch can meet. Over HTTP, against the stand-in API server."""

import json
import threading

import pytest

from extender.kube.stream import nodes, pods
from extender.kube.watch import ListWatch, Pace
from extender.state.pods import Changes, NodeRow, PodRow
from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.faults import Answer, Cut, Fault, Send, Stall
from lab.standins.patience import PATIENCE_S, until
from numakin.process.threads import Backoff, Failure, Threads
from tests.extender.kube.viewing import QUICK, View, watching
from tests.supervised import threads


def test_what_is_there_at_the_start_comes_whole(server, view, watched):
    server.create_pod("a")
    server.create_pod("b")
    watched()
    view.shows("a", "b")
    assert view.wholes == 1


def test_creations_bindings_and_deletions_follow(server, view, watched):
    watched()
    server.create_pod("a")
    view.bound("a", "")
    server.bind("a", "n1")
    view.bound("a", "n1")
    server.delete("v1", "pods", "a", "default", grace_s=0)
    view.shows()
    assert view.wholes == 1


def test_pods_that_have_ended_are_gone(server, view, watched):
    server.create_pod("a")
    server.create_pod("done")
    server.set_phase("done", "Succeeded")
    watched()
    view.shows("a")
    server.set_phase("a", "Failed")
    view.shows()


def test_long_lists_come_in_pages_at_one_revision(server, view, watched, monkeypatch):
    monkeypatch.setattr("extender.kube.watch.PAGE", 3)
    for number in range(8):
        server.create_pod(f"p{number}")
    watched()
    view.shows(*(f"p{number}" for number in range(8)))
    lists = [request for request in server.asked if request.verb == "list"]
    assert [request.query["limit"] for request in lists] == ["3", "3", "3"]
    assert all("resourceVersion" not in request.query for request in lists)
    assert view.wholes == 1


def test_a_list_that_outlives_its_revision_starts_over_with_larger_pages(server, view, watched, monkeypatch):
    monkeypatch.setattr("extender.kube.watch.PAGE", 3)
    for number in range(8):
        server.create_pod(f"p{number}")
    gone = Answer(410, json.dumps({"kind": "Status", "reason": "Expired", "code": 410}).encode())
    server.order(gone, "list", "pods")
    watched()
    view.shows(*(f"p{number}" for number in range(8)))
    assert [entry.query["limit"] for entry in server.asked if entry.verb == "list"] == ["3", "24"]


def test_the_watch_asks_for_bookmarks_a_timeout_and_the_lists_revision(server, watched):
    watcher = watched(Pace(watch_s=123))
    watching(server)
    query = next(entry.query for entry in server.asked if entry.verb == "watch")
    assert query["allowWatchBookmarks"] == "true"
    assert query["timeoutSeconds"] == "123"
    assert query["resourceVersion"] == watcher.standing.revision


def test_a_watch_that_ends_is_taken_up_where_it_ended(server, view, watched):
    watcher = watched(Pace(Backoff(first_s=0.01), watch_s=1))
    watching(server, 3)
    server.create_pod("late")
    view.shows("late")
    assert watcher.standing.lists == 1
    assert watcher.standing.failures == 0


def test_bookmarks_move_the_revision_on(server, view, watched):
    watcher = watched()
    watching(server)
    for number in range(5):
        server.create_node(f"n{number}")
    server.bookmark()
    until(lambda: watcher.standing.revision == str(server.store.revision), "the latest revision")
    server.break_watches(Cut())
    watching(server, 2)
    resumed = [entry.query["resourceVersion"] for entry in server.asked if entry.verb == "watch"][-1]
    assert resumed == str(server.store.revision)
    assert watcher.standing.lists == 1


BROKEN = {
    "FIN in the middle": Cut(),
    "reset": Cut(reset=True),
    "garbage": Send(b"{garbage\n"),
    "not an event": Send(b'{"kind":"Pod"}\n'),
    "an error in the stream": Send(b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd"}}\n'),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
def test_a_broken_watch_resumes_and_loses_nothing(server: ApiServer, view: View, watched, fault: Fault):
    watcher = watched()
    watching(server)
    server.create_pod("before")
    view.shows("before")
    server.break_watches(fault)
    server.create_pod("meanwhile")
    view.shows("before", "meanwhile")
    assert watcher.standing.lists == 1
    until(lambda: watcher.standing.failures >= 1, "the break is counted")


def test_half_an_event_at_a_break_is_not_half_a_pod(server, view, watched):
    watched()
    watching(server)
    server.order(Cut(), "watch", "pods", after=1)
    server.break_watches(Send(b'{"type":"ADDED","object":{"kind":"Po'))
    server.create_pod("a")
    view.shows("a")


def test_a_silent_connection_is_given_up(server, view, watched):
    watcher = watched(Pace(Backoff(first_s=0.01), watch_s=1, patience_s=0.5))
    watching(server)
    server.break_watches(Stall())
    server.create_pod("meanwhile")
    view.shows("meanwhile")
    assert watcher.standing.lists == 1


def test_a_revision_that_does_not_exist_is_listed_anew(server, view, watched):
    """An API server restored from a backup is silent about revisions that it has not reached yet."""
    for number in range(9):
        server.create_node(f"n{number}")
    watched(Pace(Backoff(first_s=0.01), watch_s=1))
    watching(server)
    server.store.rewind(5)
    server.create_pod("a")
    view.shows("a")
    assert view.wholes == 2


def test_a_list_that_is_due_stays_due_where_it_fails(server, view, watched):
    """A watch from a revision that does not exist would be silent for its whole time once more."""
    for number in range(9):
        server.create_node(f"n{number}")
    watched(Pace(Backoff(first_s=0.01), watch_s=1))
    watching(server)
    server.order(Answer(503), "list", "pods")
    server.store.rewind(5)
    view.wait(lambda view: view.wholes == 2)
    verbs = [entry.verb for entry in server.asked if entry.verb in ("list", "watch")]
    failed = verbs.index("list", 1)
    assert verbs[failed : failed + 2] == ["list", "list"]


def test_a_consumer_that_fails_gets_everything_anew(server, api):
    seen: list[Changes[PodRow]] = []
    again = threading.Event()

    def take(changes: Changes[PodRow]) -> None:
        seen.append(changes)
        if len(seen) == 1:
            raise RuntimeError("a bug")
        again.set()

    failures: list[Failure] = []
    watcher = ListWatch(api, pods(), take, QUICK, threads=Threads(failures.append))
    server.create_pod("a")
    watcher.start()
    assert again.wait(PATIENCE_S)
    watcher.stop()
    assert [str(failure.error) for failure in failures] == ["a bug"]
    assert all(entry.whole for entry in seen)


@pytest.mark.parametrize("state", ["quiet", "stalled", "refused"])
def test_stopping_does_not_wait_for_the_server(server, watched, state):
    watcher = watched(Pace(Backoff(first_s=60)))
    watching(server)
    if state == "stalled":
        server.break_watches(Stall())
    if state == "refused":
        server.order(Answer(500), "watch", "pods", times=100)
        server.break_watches(Cut())
        server.wait_for("watches", 0, resource="pods")
    watcher.stop()
    assert not watcher.alive


def test_age_tells_how_old_the_view_is(server, watched):
    watcher = watched()
    watching(server)
    seen = watcher.standing.seen
    server.bookmark()
    until(lambda: watcher.standing.seen != seen, "a sign of life")
    assert 0 <= watcher.age_s < PATIENCE_S


def test_nodes_are_followed_by_name(server, api):
    seen: list[Changes[NodeRow]] = []
    received = threading.Event()
    server.create_node("n1", status={"conditions": [{"type": "Ready", "status": "True"}]})

    def take(changes: Changes[NodeRow]) -> None:
        seen.append(changes)
        if changes.gone:
            received.set()

    watcher = ListWatch(api, nodes(), take, QUICK, threads=threads())
    watcher.start()
    assert watcher.synced.wait(PATIENCE_S)
    server.delete("v1", "nodes", "n1")
    assert received.wait(PATIENCE_S)
    watcher.stop()
    assert [row.name for row in seen[0].rows] == ["n1"]
    assert seen[0].rows[0].ready
    assert seen[-1].gone == ("n1",)
