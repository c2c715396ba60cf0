"""The extender is told everything once, and then only what is new, however often the stream breaks."""

from hypothesis import given
from hypothesis import strategies as st

from enforcer import journal
from enforcer.report.mirror import Mirror
from placement.cpuset import CpuSet, NumaSet
from placement.demand import Demand
from placement.occupancy import Holding, Occupancy, Seat, fingerprint
from proto import local_pb2 as local
from proto import report_pb2 as pb


def occupied(occupancy: Occupancy, name: str) -> Occupancy:
    seat = Seat(name, name, "ns/web", NumaSet.parse("0"), Demand(1000, 1 << 20))
    return occupancy.seated(seat).held(Holding(f"c-{name}", "app", name, name, CpuSet.parse("0-3")))


def started(occupancy: Occupancy, session: str = "s1") -> Mirror:
    mirror = Mirror()
    mirror.started(local.Start(node="n1", session=session, machine=pb.Machine(name="m")))
    mirror.reported(journal.whole(occupancy, (), registered=True))
    return mirror


def test_a_new_extender_gets_the_machine_and_everything() -> None:
    mirror = started(occupied(Occupancy(generation=1), "a"))
    assert mirror.hello("1").hello.acked_generation == 0
    assert [one.WhichOneof("message") for one in mirror.welcomed(pb.Welcome())] == ["machine"]
    news = mirror.news()
    assert news is not None
    assert news.report.base_generation == 0
    assert [one.key for one in news.report.seats] == ["a"]
    assert news.report.registered


def test_an_unchanged_node_has_no_news() -> None:
    mirror = started(Occupancy(generation=1))
    list(mirror.welcomed(pb.Welcome()))
    assert mirror.news() is not None
    assert mirror.news() is None
    assert mirror.heartbeat().ByteSize() <= 8


def test_a_change_is_told_as_a_difference() -> None:
    before = occupied(Occupancy(generation=1), "a")
    mirror = started(before)
    list(mirror.welcomed(pb.Welcome()))
    mirror.news()
    after = occupied(before, "b")
    mirror.reported(journal.difference(before, after, (), registered=None, free={}))
    news = mirror.news()
    assert news is not None
    assert (news.report.base_generation, news.report.generation) == (before.generation, after.generation)
    assert [one.key for one in news.report.seats] == ["b"]


def test_an_extender_that_still_knows_us_gets_only_what_it_missed() -> None:
    before = occupied(Occupancy(generation=1), "a")
    mirror = started(before)
    list(mirror.welcomed(pb.Welcome()))
    mirror.news()
    mirror.acknowledged(pb.Ack(generation=before.generation))
    after = occupied(before, "b")
    mirror.reported(journal.difference(before, after, (), registered=None, free={}))
    mirror.news()  # goes out, and is lost with the stream
    hello = mirror.hello("1").hello
    assert hello.acked_generation == before.generation
    assert hello.acked_fingerprint == fingerprint(before.seats.values(), before.holdings.values())
    assert list(mirror.welcomed(pb.Welcome(resume=True))) == []
    news = mirror.news()
    assert news is not None
    assert news.report.base_generation == before.generation
    assert [one.key for one in news.report.seats] == ["b"]


def test_another_hook_session_starts_from_nothing() -> None:
    mirror = started(occupied(Occupancy(generation=1), "a"))
    list(mirror.welcomed(pb.Welcome()))
    mirror.news()
    mirror.acknowledged(pb.Ack(generation=3))
    mirror.started(local.Start(node="n1", session="s2"))
    assert mirror.hello("1").hello.acked_generation == 0


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), max_size=20), st.lists(st.booleans(), max_size=20))
def test_what_is_told_in_differences_adds_up_to_what_is(changes: list[tuple[bool, str]], tells: list[bool]) -> None:
    occupancy = Occupancy(generation=1)
    mirror = started(occupancy)
    list(mirror.welcomed(pb.Welcome()))
    reader = Mirror()
    for index, (comes, name) in enumerate([(True, "a"), *changes]):
        after = occupied(occupancy, name) if comes else occupancy.without_pod(name)
        mirror.reported(journal.difference(occupancy, after, (), registered=None, free={}))
        occupancy = after
        if index >= len(tells) or tells[index]:
            news = mirror.news()
            if news is not None:
                reader.reported(news.report)
    news = mirror.news()
    if news is not None:
        reader.reported(news.report)
    assert reader.occupancy.seats == occupancy.seats
    assert reader.occupancy.holdings == occupancy.holdings
