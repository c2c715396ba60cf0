"""Events on pods: told once, counted after, and never too many."""

import pytest

from extender.kube import events
from extender.kube.events import About, Book, Events, KubeEvent, StandingEvent, counted, rendered
from lab.standins.apiserver.faults import Answer
from lab.standins.patience import until
from tests.supervised import threads

POD = About("shop", "cart-1", "u1")
PLACED = KubeEvent(POD, "NumaPlaced", "on NUMA node 1 of node-7, beside 3 members of shop/cart")


def test_the_same_again_is_counted():
    book = Book()
    first = book.enter(PLACED, 1000)
    again = book.enter(PLACED, 1010)
    assert first.count == 1
    assert (again.name, again.first, again.last, again.count) == (first.name, 1000, 1010, 2)


def test_another_message_is_another_event():
    book = Book()
    assert book.enter(PLACED, 1000).count == 1
    other = KubeEvent(POD, "NumaPlaced", "on NUMA node 0")
    assert book.enter(other, 1000.1).count == 1
    assert book.enter(other, 1000.2).name != book.enter(PLACED, 1000.3).name


def test_figures_that_differ_make_no_other_event():
    """As a container is told that restarts again and again."""
    book = Book()
    received = [
        book.enter(
            KubeEvent(POD, "NumaPlaced", f"room left {share} %", series="create app on NUMA node 1"), 1000 + share
        )
        for share in range(5)
    ]
    assert {entry.name for entry in received} == {received[0].name}
    assert received[-1].count == 5
    assert (
        book.enter(KubeEvent(POD, "NumaPlaced", "room left 4 %", series="create app on NUMA node 0"), 1010).count == 1
    )


def test_the_same_much_later_is_new():
    book = Book()
    book.enter(PLACED, 1000)
    assert book.enter(PLACED, 1001 + events.AGAIN_WITHIN_S).count == 1


def test_a_pod_has_25_at_once_and_then_one_in_five_minutes():
    book = Book()
    assert [book.enter(PLACED, 1000) is not None for _ in range(27)] == [True] * 25 + [False] * 2
    assert book.enter(PLACED, 1000 + events.REFILL_S)
    assert book.enter(PLACED, 1000 + events.REFILL_S) is None


def test_one_pods_events_do_not_take_anothers_place():
    book = Book()
    for _ in range(30):
        book.enter(PLACED, 1000)
    assert book.enter(KubeEvent(About("shop", "other", "u2"), "NumaPlaced", "x"), 1000)


def test_a_node_that_speaks_of_ever_other_pods_has_so_many_and_then_one_a_second():
    """A compromised enforcer's would fill the API server's store."""
    book = Book()
    invented = [KubeEvent(About("shop", f"p{n}", f"u{n}"), "NumaPlaced", "x", node="n1") for n in range(2_000)]
    assert sum(book.enter(event, 1000) is not None for event in invented) == events.NODE_BURST
    assert sum(book.enter(event, 1010) is not None for event in invented) == 10
    assert book.enter(KubeEvent(POD, "NumaPlaced", "x", node="n2"), 1010)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(events, "REMEMBERED", 2)
    book = Book()
    many = [KubeEvent(About("shop", f"p{n}", f"u{n}"), "NumaPlaced", "x") for n in range(3)]
    for entry in many:
        book.enter(entry, 1000)
    assert book.enter(many[2], 1001).count == 2
    assert book.enter(many[0], 1001).count == 1


def test_an_event_says_all_that_kubectl_shows():
    assert rendered(PLACED, StandingEvent("cart-1.1", 0, 0), "extender-0") == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "cart-1.1", "namespace": "shop"},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "cart-1", "uid": "u1"},
        "reason": "NumaPlaced",
        "message": "on NUMA node 1 of node-7, beside 3 members of shop/cart",
        "type": "Normal",
        "source": {"component": "numakin", "host": "extender-0"},
        "firstTimestamp": "1970-01-01T00:00:00Z",
        "lastTimestamp": "1970-01-01T00:00:00Z",
        "count": 1,
        "reportingComponent": "numakin",
        "reportingInstance": "extender-0",
    }
    assert counted(PLACED, StandingEvent("x", 0, 60, 3)) == {
        "count": 3,
        "lastTimestamp": "1970-01-01T00:01:00Z",
        "message": PLACED.message,
    }


def test_a_long_message_is_cut():
    message = rendered(KubeEvent(POD, "R", "x" * 2000, warning=True), StandingEvent("n", 0, 0), "h")["message"]
    assert len(message) == events.LONGEST
    assert message.endswith("...")


def test_the_longest_pod_name_leaves_room_for_the_events_own():
    received = Book().enter(KubeEvent(About("s", "p" * 253, "u"), "R", "m"), 2_000_000_000)
    assert len(received.name) <= 253


@pytest.fixture
def received(server, api):
    """Emits these Events, and gives what is at the API server then."""
    server.create_pod("cart-1", "shop")

    def tell(*some: KubeEvent, **options):
        teller = Events(api, "extender-0", **options, threads=threads())
        teller.start()
        for event in some:
            teller.emit(event)
        teller.stop()
        result = api.get("/api/v1/namespaces/shop/events").json()["items"]
        return teller, sorted(result, key=lambda entry: entry["message"])

    return tell


def test_events_reach_the_pod(received):
    _, result = received(PLACED, PLACED, KubeEvent(POD, "NumaAnnotation", "annotation x", warning=True))
    assert [(entry["reason"], entry["type"], entry["count"]) for entry in result] == [
        ("NumaAnnotation", "Warning", 1),
        ("NumaPlaced", "Normal", 2),
    ]
    assert result[1]["involvedObject"]["name"] == "cart-1"


def test_the_latest_message_of_a_series_stands(received):
    _, (result,) = received(*(KubeEvent(POD, "NumaPlaced", f"room left {share} %", series="x") for share in (7, 5)))
    assert (result["count"], result["message"]) == (2, "room left 5 %")


def test_an_event_that_has_ended_meanwhile_is_told_anew(server, received):
    """Events live for an hour at the API server."""
    server.order(Answer(404, b'{"kind":"Status","reason":"NotFound","code":404}'), "patch", "events")
    server.order(Answer(201, b"{}"), "create", "events")
    _, result = received(PLACED, PLACED)
    assert [entry["count"] for entry in result] == [2]


@pytest.mark.parametrize("fault", [Answer(500), Answer(403, b"{}"), Answer(429, b"", {"Retry-After": "1"})])
def test_what_can_not_be_told_is_dropped_and_counted(server, received, fault):
    server.order(fault, "create", "events")
    teller, result = received(PLACED, KubeEvent(POD, "Other", "other"))
    assert teller.dropped == 1
    assert [entry["reason"] for entry in result] == ["Other"]


def test_a_replica_that_does_not_write_tells_nothing(received):
    teller, result = received(PLACED, writes=lambda: False)
    assert result == []
    assert teller.dropped == 0


def test_what_comes_while_no_replica_leads_is_told_by_the_one_that_then_does(server, api):
    """As each begins it lists all pods, before the first of them leads."""
    server.create_pod("cart-1", "shop")
    leads = dict.fromkeys("ab", False)
    replicas = {
        name: Events(
            api, name, lambda name=name: leads[name], lambda name=name: any(leads.values()) and not leads[name],
            threads=threads(),
        )
        for name in leads
    }  # fmt: skip
    for replica in replicas.values():
        replica.start()
        replica.emit(PLACED)
    leads["b"] = True

    def told():
        found = api.get("/api/v1/namespaces/shop/events").json()["items"]
        return [(each["reportingInstance"], each["count"]) for each in found]

    until(lambda: told() == [("b", 1)], "the one that leads tells it")
    until(replicas["a"]._waiting.empty, "the other leaves it to that one")
    leads.update(a=True, b=False)
    for replica in replicas.values():
        replica.stop()
    assert told() == [("b", 1)]


def test_a_full_queue_drops(api, monkeypatch):
    monkeypatch.setattr(events, "WAITING", 2)
    teller = Events(api, "h", threads=threads())
    for _ in range(5):
        teller.emit(PLACED)
    assert teller.dropped == 3
