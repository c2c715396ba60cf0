"""The view follows the API server through everything that a list or a watch can meet. Over HTTP, against the stand-in API server."""

import json
import threading
from collections.abc import Callable, Iterator

import pytest

from extender.kube.api import Api
from extender.kube.stream import nodes, pods
from extender.kube.watch import OUTAGE_S, ListWatch, Pace
from extender.state.pods import Changes, NodeRow, PodRow
from process.threads import Backoff, Failure, Threads
from standins.apiserver import ApiServer
from standins.apiserver.faults import Answer, Cut, Fault, Send, Stall
from standins.patience import PATIENCE_S, until
from tests.supervised import threads

QUICK = Pace(Backoff(first_s=0.01, longest_s=0.05))


class View:
    """What a consumer of the changes knows; waits for it to become true."""

    def __init__(self) -> None:
        self.rows: dict[str, PodRow] = {}
        self.wholes = 0
        self._changed = threading.Condition()

    def take(self, changes: Changes[PodRow]) -> None:
        with self._changed:
            if changes.whole:
                self.rows.clear()
                self.wholes += 1
            self.rows.update({row.name: row for row in changes.rows})
            for uid in changes.gone:
                self.rows = {name: row for name, row in self.rows.items() if row.uid != uid}
            self._changed.notify_all()

    def wait(self, holds: Callable[["View"], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: holds(self), PATIENCE_S), self.rows

    def shows(self, *names: str) -> None:
        self.wait(lambda view: sorted(view.rows) == sorted(names))

    def bound(self, name: str, node: str) -> None:
        self.wait(lambda view: name in view.rows and view.rows[name].node == node)


@pytest.fixture
def view() -> View:
    return View()


@pytest.fixture
def watched(api: Api, view: View) -> Iterator[Callable[..., ListWatch]]:
    """Starts a watch of pods."""
    started: list[ListWatch] = []

    def start(pace: Pace = QUICK) -> ListWatch:
        watcher = ListWatch(api, pods(), view.take, pace, threads=threads())
        started.append(watcher)
        watcher.start()
        assert watcher.synced.wait(PATIENCE_S)
        return watcher

    yield start
    for entry in started:
        entry.stop()


def watching(server: ApiServer, times: int = 1) -> None:
    assert server.wait_for(lambda: server.count("watch", "pods") >= times and server.watches("pods") == 1)


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


REFUSED = {
    "500": Answer(500, b"{}"),
    "503": Answer(503, b"starting"),
    "403": Answer(403, b'{"kind":"Status","reason":"Forbidden","message":"pods is forbidden","code":403}'),
    "no answer": Cut(),
}


@pytest.mark.parametrize("fault", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("verb", ["list", "watch"])
def test_refusals_are_waited_out(server: ApiServer, view: View, watched, fault: Fault, verb: str):
    server.create_pod("a")
    server.order(fault, verb, "pods", times=2)
    watched()
    server.create_pod("b")
    view.shows("a", "b")


def test_an_old_revision_is_listed_anew_at_once(server, view, watched):
    slow = Pace(Backoff(first_s=60))
    watched(slow)
    watching(server)
    server.create_pod("before")
    view.shows("before")
    with server.store.changed:
        server.delete("v1", "pods", "before", "default", grace_s=0)
        server.store.forget(server.store.revision)
    server.create_pod("after")
    view.shows("after")
    assert view.wholes == 2


def test_410_as_an_answer_is_listed_anew_too(server, view, watched):
    server.order(Answer(410, b'{"kind":"Status","reason":"Expired","code":410}'), "watch", "pods")
    watched()
    view.wait(lambda view: view.wholes == 2)


def test_410_again_and_again_is_not_hammered(server, view, watched):
    server.order(Answer(410, b'{"kind":"Status","reason":"Expired","code":410}'), "watch", "pods", times=3)
    watched(Pace(Backoff(first_s=0.01, longest_s=0.01)))
    view.wait(lambda view: view.wholes == 4)


def test_410_after_an_outage_is_listed_anew_without_another_wait(server, view, watched):
    """As after an API server's restart: it is not there, then knows no rights yet, then not what was before."""
    waited = []

    class Recorded(Pace):
        def wait_s(self, failures, *_bounds):
            waited.append(failures)
            return 0.01

    for code in (503, 503, 503, 403, 410):
        server.order(Answer(code, b'{"kind":"Status","code":%d}' % code), "watch", "pods")
    watched(Recorded())
    watching(server)
    server.create_pod("after")
    view.shows("after")
    assert waited == [1, 2, 3, 1]


def test_an_outage_is_not_waited_out_for_long_but_a_kind_that_is_not_there_is():
    pace = Pace(Backoff(first_s=1, longest_s=300))
    assert pace.wait_s(20, at_most_s=OUTAGE_S) <= OUTAGE_S
    assert pace.wait_s(20) >= 150


def test_retry_after_is_respected(server, watched):
    server.order(Answer(429, b"Too many requests\n", {"Retry-After": "1"}), "list", "pods")
    watched()
    first, second = (entry.at for entry in server.asked if entry.verb == "list")
    assert second - first >= 1


def test_failures_wait_longer_and_longer_up_to_a_bound():
    pace = Pace(Backoff(first_s=1, longest_s=8))
    for failures, most in ((1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (1000, 8)):
        assert most / 2 <= pace.wait_s(failures) <= most
    assert pace.wait_s(1, at_least_s=10) >= 10


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
        assert server.wait_for(lambda: server.watches("pods") == 0)
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
