"""One replica writes: the holder of the Lease."""

import threading
from datetime import UTC, datetime, timedelta, timezone
from math import inf

import pytest

from extender.kube.lease import DEFAULT_TERMS, Election, LeaseDurations, Seen, claim, micro_time
from lab.standins.apiserver.faults import Answer
from lab.standins.patience import PATIENCE_S, until
from numakin.process.threads import Threads
from tests.supervised import threads

WALL = datetime(2026, 11, 20, 21, 0, tzinfo=UTC)


def body(holder: str = "a", revision: str = "7", **spec: object) -> dict:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "r1", **spec}
    return {"metadata": {"name": "l", "resourceVersion": revision}, "spec": spec}


@pytest.mark.parametrize(
    ("wall", "text"),
    [
        (WALL, "2026-11-20T21:00:00.000000Z"),
        (WALL + timedelta(microseconds=5), "2026-11-20T21:00:00.000005Z"),
        (WALL.astimezone(timezone(timedelta(hours=2))), "2026-11-20T21:00:00.000000Z"),
    ],
)
def test_times_always_have_six_digits(wall, text):
    assert micro_time(wall) == text


def test_a_lease_that_nobody_holds_is_free():
    assert Seen().free(0)
    assert Seen(body(holder=""), 0).free(0)


def test_a_lease_runs_out_by_our_own_clock_since_its_last_change():
    seen = Seen().updated(body(), 100)
    assert not seen.free(115)
    assert seen.free(115.1)
    assert not seen.updated(body(renewTime="r2", revision="8"), 114).free(120)
    assert seen.updated(body(revision="8"), 114).free(115.1)


def test_renewing_keeps_when_it_was_acquired():
    renewed = claim(Seen(body(acquireTime="then", leaseTransitions=3)), "a", "l", WALL, 15)
    assert renewed["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "then",
        "renewTime": "2026-11-20T21:00:00.000000Z",
        "leaseTransitions": 3,
    }
    assert renewed["metadata"] == {"name": "l", "resourceVersion": "7"}


def test_taking_over_counts_a_transition():
    taken = claim(Seen(body(acquireTime="then", leaseTransitions=3)), "b", "l", WALL, 15)
    assert taken["spec"]["leaseTransitions"] == 4
    assert taken["spec"]["acquireTime"] == taken["spec"]["renewTime"]


QUICK = LeaseDurations(retry_period=0.02)
LONG = LeaseDurations(lease_duration=400, renew_deadline=2 * PATIENCE_S, retry_period=0.02)


class Told:
    def __init__(self) -> None:
        self.leading = threading.Event()
        self.following = threading.Event()

    def __call__(self, leading) -> None:
        (self.leading if leading else self.following).set()


@pytest.fixture
def elected(api):
    started: list[Election] = []

    def start(me: str, terms: LeaseDurations = QUICK) -> tuple[Election, Told]:
        received = Told()
        first = Election(api, "numakin-system", "numakin-extender", me, received, terms=terms, threads=threads())
        started.append(first)
        first.start()
        return first, received

    yield start
    for first in started:
        first.stop()


def test_of_several_replicas_one_leads_and_the_next_follows_at_once_when_it_ends(elected):
    first, received = elected("one")
    assert received.leading.wait(PATIENCE_S)
    other, told_other = elected("other")
    until(lambda: other.holder == "one", "it has looked")
    assert first.leading
    assert not other.leading
    assert other.holder == "one"
    first.stop()
    assert received.following.is_set()
    assert told_other.leading.wait(PATIENCE_S)


def test_a_reason_not_to_renew_is_warned_of_once(server, elected, caplog):
    with caplog.at_level("DEBUG"):
        server.order(Answer(403), "get", "leases", times=20)
        _, received = elected("one")
        assert received.leading.wait(PATIENCE_S)
    told = [record.levelname.lower() for record in caplog.records if record.getMessage() == "lease not renewed"]
    assert told == ["warning"] + ["debug"] * 19


def test_of_many_that_start_together_one_leads(server, elected):
    many = [elected(f"r{number}")[0] for number in range(5)]
    server.wait_for("asked", 50, verb="get", resource="leases")
    until(lambda: any(entry.leading for entry in many), "one leads")
    assert sum(entry.leading for entry in many) == 1


def test_a_lead_begins_anew_after_a_break(server, elected):
    first, received = elected("one", LeaseDurations(renew_deadline=2, retry_period=0.02))
    assert received.leading.wait(PATIENCE_S)
    began = first.leading_since
    server.wait_for("asked", 5, verb="update", resource="leases")
    assert first.leading_since == began, "it was renewed"
    server.order(Answer(500), "update", "leases", times=10_000)
    until(lambda: first.leading_since == inf, "its deadline is over")
    server.end_faults()
    until(lambda: first.leading_since < inf, "it leads again")
    assert first.leading_since > began


def test_a_holder_that_can_not_renew_stops_writing_by_itself(server, elected):
    first, received = elected("one", LeaseDurations(renew_deadline=2, retry_period=0.02))
    assert received.leading.wait(PATIENCE_S)
    server.order(Answer(500), "update", "leases", times=10_000)
    until(lambda: not first.leading, "its deadline is over")
    assert received.following.wait(PATIENCE_S)
    assert not first.leading


def test_whoever_sees_another_holder_stops_at_once(server, elected):
    first, received = elected("one", LONG)
    assert received.leading.wait(PATIENCE_S)
    taken = {"spec": {"holderIdentity": "other", "renewTime": "2026-11-20T21:00:00.000000Z"}}
    server.patch("coordination.k8s.io/v1", "leases", "numakin-extender", taken, namespace="numakin-system")
    assert received.following.wait(LONG.renew_deadline / 2)
    assert not first.leading


def test_the_defaults_are_client_gos():
    assert LeaseDurations(lease_duration=15, renew_deadline=10, retry_period=2) == DEFAULT_TERMS


@pytest.mark.parametrize(
    ("terms", "wrong"),
    [
        ((10, 10, 2), "lease-duration 10 must be over renew-deadline 10"),
        ((15, 2.4, 2), r"renew-deadline 2.4 must be over 1.2 x retry-period 2"),
    ],
)
def test_a_holder_must_stop_before_another_may_take_over(terms, wrong):
    with pytest.raises(ValueError, match=wrong):
        LeaseDurations(*terms)


def test_the_lease_says_how_long_the_others_leave_its_holder_in_place(server, elected):
    _, received = elected("one", LeaseDurations(lease_duration=40, retry_period=0.02))
    assert received.leading.wait(PATIENCE_S)
    result = server.get("coordination.k8s.io/v1", "leases", "numakin-extender", "numakin-system")
    assert result["spec"]["leaseDurationSeconds"] == 40


def test_a_dead_holders_lease_is_taken_when_it_has_run_out(server, elected):
    spec = {"holderIdentity": "dead", "leaseDurationSeconds": 1}
    metadata = {"name": "numakin-extender"}
    server.create("coordination.k8s.io/v1", "leases", {"metadata": metadata, "spec": spec}, "numakin-system")
    _, received = elected("one")
    assert received.leading.wait(PATIENCE_S)
    result = server.get("coordination.k8s.io/v1", "leases", "numakin-extender", "numakin-system")
    assert result["spec"]["leaseTransitions"] == 1


NONSENSE = [b"<html><body>Please log in</body></html>", b"", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000]
MISSHAPEN = [b'{"spec": 5}', b'{"spec": {"holderIdentity": 7, "leaseDurationSeconds": "x"}}', b'{"metadata": []}']


@pytest.mark.parametrize("body", [*NONSENSE, *MISSHAPEN])
def test_an_answer_that_is_no_lease_does_not_end_the_election(server, api, body):
    """A proxy before the API server answers in its place, with 200."""
    server.order(Answer(200, body), "get", "leases", times=2)
    received = Told()
    first = Election(
        api, "numakin-system", "numakin-extender", "me", received, terms=QUICK, threads=Threads(lambda _: None)
    )
    first.start()
    assert received.leading.wait(PATIENCE_S)
    first.stop()


def test_what_was_written_is_not_believed_when_the_answer_is_nonsense(server, elected):
    server.order(Answer(200, b"<html>"), "create", "leases", times=1)
    first, received = elected("one")
    assert received.leading.wait(PATIENCE_S)
    assert server.count("get", "leases") >= 2
    assert first.leading
