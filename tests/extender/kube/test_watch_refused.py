"""Refusals and old revisions are waited out, for long or not at all, and nothing is lost."""

import pytest

from extender.kube.watch import OUTAGE_S, Pace
from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.faults import Answer, Cut, Fault
from numakin.process.threads import Backoff
from tests.extender.kube.viewing import View, watching

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
