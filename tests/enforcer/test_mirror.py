"""Each replica of the extender is told everything once, and then only what is new, however often its stream breaks."""

from hypothesis import given
from hypothesis import strategies as st

from enforcer import journal
from enforcer.report.mirror import Mirror
from enforcer.report.telling import Telling
from placement.cpuset import CpuSet, NumaSet
from placement.demand import Demand
from placement.live import Live
from placement.occupancy import Holding, Occupancy, Seat, fingerprint
from proto import convert
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


def changed(mirror: Mirror, before: Occupancy, after: Occupancy, *pods: str) -> None:
    decisions = [pb.DecisionRecord(pod=one) for one in pods]
    mirror.reported(journal.difference(before, after, decisions, registered=None))


def welcomed(mirror: Mirror) -> Telling:
    telling = Telling(mirror)
    telling.welcomed(pb.Welcome())
    return telling


def reports(telling: Telling) -> list[pb.Report]:
    return [one.report for one in telling.news() if one.HasField("report")]


def test_a_new_extender_gets_the_machine_and_everything() -> None:
    telling = Telling(started(occupied(Occupancy(generation=1), "a")))
    assert telling.hello("1").hello.acked_generation == 0
    telling.welcomed(pb.Welcome())
    machine, report = telling.news()
    assert machine.machine.name == "m"
    assert report.report.base_generation == 0
    assert [one.key for one in report.report.seats] == ["a"]
    assert report.report.registered


def test_an_unchanged_node_has_no_news() -> None:
    telling = welcomed(started(Occupancy(generation=1)))
    assert telling.news()
    assert not telling.news()
    assert telling.heartbeat().ByteSize() <= 8


def test_nothing_is_told_of_a_node_before_its_hook_has_told_everything() -> None:
    mirror = Mirror()
    mirror.started(local.Start(node="n1", session="s1"))
    telling = welcomed(mirror)
    assert not telling.news()
    mirror.reported(journal.whole(Occupancy(generation=1), (), registered=True))
    assert telling.news()


def test_a_change_is_told_as_a_difference() -> None:
    before = occupied(Occupancy(generation=1), "a")
    mirror = started(before)
    telling = welcomed(mirror)
    telling.news()
    after = occupied(before, "b")
    changed(mirror, before, after)
    (report,) = reports(telling)
    assert (report.base_generation, report.generation) == (before.generation, after.generation)
    assert [one.key for one in report.seats] == ["b"]


def test_live_figures_and_the_runtimes_word_are_told_though_the_placements_are_the_same() -> None:
    before = Occupancy(live=Live({0: 7, 1: 7}), generation=1)
    mirror = started(before)
    telling = welcomed(mirror)
    telling.news()
    after = before.with_live(Live({0: 7, 1: 5}, {(0, 2 << 20): 0}, {1: 900}, {1: 0.5}))
    mirror.reported(journal.difference(before, after, (), registered=False))
    (report,) = reports(telling)
    assert (report.registered, report.generation) == (False, 1)
    assert convert.live_from(report) == Live({1: 5}, {(0, 2 << 20): 0}, {1: 900}, {1: 0.5})
    assert mirror.occupancy.live == after.live
    assert not telling.news()


def test_what_an_earlier_hook_read_is_forgotten() -> None:
    mirror = started(Occupancy(live=Live({0: 7}), generation=1))
    mirror.started(local.Start(node="n1", session="s2", machine=pb.Machine(name="other")))
    mirror.reported(journal.whole(Occupancy(live=Live(used_cpu={0: 1}), generation=1), (), registered=True))
    assert mirror.occupancy.live == Live(used_cpu={0: 1})


def test_an_extender_that_still_knows_us_gets_only_what_it_missed() -> None:
    before = occupied(Occupancy(generation=1), "a")
    mirror = started(before)
    telling = welcomed(mirror)
    telling.news()
    telling.acknowledged(pb.Ack(generation=before.generation))
    after = occupied(before, "b")
    changed(mirror, before, after)
    telling.news()  # goes out, and is lost with the stream
    hello = telling.hello("1").hello
    assert hello.acked_generation == before.generation
    assert hello.acked_fingerprint == fingerprint(before.seats.values(), before.holdings.values())
    telling.welcomed(pb.Welcome(resume=True))
    (report,) = reports(telling)
    assert report.base_generation == before.generation
    assert [one.key for one in report.seats] == ["b"]


def test_another_hook_session_starts_from_nothing() -> None:
    mirror = started(occupied(Occupancy(generation=1), "a"))
    telling = welcomed(mirror)
    telling.news()
    telling.acknowledged(pb.Ack(generation=3))
    mirror.started(local.Start(node="n1", session="s2", machine=pb.Machine(name="other")))
    assert telling.hello("1").hello.acked_generation == 0
    assert not telling.news()
    mirror.reported(journal.whole(Occupancy(generation=1), (), registered=True))
    machine, report = telling.news()
    assert (machine.machine.name, report.report.base_generation) == ("other", 0)


class TestReplicas:
    """What one replica has heard makes no difference for another."""

    def test_each_is_told_everything_and_every_decision(self) -> None:
        before = Occupancy(generation=1)
        mirror = started(before)
        tellings = [welcomed(mirror) for _ in range(2)]
        for one in tellings:
            assert [report.base_generation for report in reports(one)] == [0]
        changed(mirror, before, occupied(before, "a"), "a")
        for one in tellings:
            (report,) = reports(one)
            assert [seat.key for seat in report.seats] == ["a"]
            assert [decision.pod for decision in report.decisions] == ["a"]

    def test_one_that_breaks_holds_up_no_other(self) -> None:
        before = Occupancy(generation=1)
        mirror = started(before)
        broken, other = welcomed(mirror), welcomed(mirror)
        for one in (broken, other):
            one.news()
            one.acknowledged(pb.Ack(generation=1))
        after = occupied(before, "a")
        changed(mirror, before, after, "a")
        other.news()
        other.acknowledged(pb.Ack(generation=after.generation))
        assert other.hello("1").hello.acked_generation == after.generation
        assert broken.hello("1").hello.acked_generation == 1
        broken.welcomed(pb.Welcome(resume=True))
        (report,) = reports(broken)
        assert [seat.key for seat in report.seats] == ["a"]
        assert [decision.pod for decision in report.decisions] == ["a"]
        assert not other.news()

    def test_one_that_comes_later_is_told_no_decisions_that_others_have_heard(self) -> None:
        before = Occupancy(generation=1)
        mirror = started(before)
        first = welcomed(mirror)
        after = occupied(before, "a")
        changed(mirror, before, after, "a")
        first.news()
        changed(mirror, after, occupied(after, "b"), "b")
        (report,) = reports(welcomed(mirror))
        assert [seat.key for seat in report.seats] == ["a", "b"]
        assert [decision.pod for decision in report.decisions] == ["b"]

    def test_decisions_that_nobody_heard_wait_for_the_first_that_comes(self) -> None:
        before = Occupancy(generation=1)
        mirror = started(before)
        changed(mirror, before, occupied(before, "a"), "a")
        (report,) = reports(welcomed(mirror))
        assert [decision.pod for decision in report.decisions] == ["a"]


class TestEarlier:
    """A replica that starts from nothing is told the last decision on each container, so that it can say why."""

    @staticmethod
    def decided(mirror: Mirror, before: Occupancy, after: Occupancy, name: str, event: str = "create") -> None:
        record = pb.DecisionRecord(pod=name, container=f"c-{name}", event=event)
        mirror.reported(journal.difference(before, after, [record], registered=None))

    def mirror(self) -> tuple[Mirror, Occupancy]:
        """Decided on a and b, and all of it told."""
        before = Occupancy(generation=1)
        one = occupied(before, "a")
        two = occupied(one, "b")
        mirror = started(before)
        self.decided(mirror, before, one, "a")
        self.decided(mirror, one, two, "b")
        welcomed(mirror).news()
        return mirror, two

    @staticmethod
    def earlier(mirror: Mirror) -> list[tuple[str, str]]:
        (report,) = reports(welcomed(mirror))
        return [(one.container, one.event) for one in report.earlier]

    def test_what_was_told_before_is_told_as_such(self) -> None:
        mirror, _ = self.mirror()
        assert self.earlier(mirror) == [("c-a", "create"), ("c-b", "create")]

    def test_what_is_news_is_not_told_twice(self) -> None:
        mirror, occupancy = self.mirror()
        self.decided(mirror, occupancy, occupied(occupancy, "c"), "c")
        (report,) = reports(welcomed(mirror))
        assert [one.container for one in report.decisions] == ["c-c"]
        assert [one.container for one in report.earlier] == ["c-a", "c-b"]

    def test_the_last_one_on_a_container_counts(self) -> None:
        mirror, occupancy = self.mirror()
        self.decided(mirror, occupancy, occupancy, "a", "synchronize")
        welcomed(mirror).news()
        assert self.earlier(mirror) == [("c-a", "synchronize"), ("c-b", "create")]

    def test_a_container_that_ended_is_forgotten(self) -> None:
        mirror, occupancy = self.mirror()
        changed(mirror, occupancy, occupancy.without_pod("a"))
        assert self.earlier(mirror) == [("c-b", "create")]

    def test_they_outlive_the_hook_that_decided(self) -> None:
        mirror, occupancy = self.mirror()
        mirror.started(local.Start(node="n1", session="s2", machine=pb.Machine(name="m")))
        mirror.reported(journal.whole(occupancy.without_pod("a"), (), registered=True))
        assert self.earlier(mirror) == [("c-b", "create")]

    def test_they_outlive_the_observer_that_told_them(self) -> None:
        """The hook tells them to the next one."""
        _, occupancy = self.mirror()
        whole = journal.whole(occupancy, (), registered=True)
        whole.earlier.append(pb.DecisionRecord(pod="a", container="c-a", event="create"))
        fresh = Mirror()
        fresh.started(local.Start(node="n1", session="s1", machine=pb.Machine(name="m")))
        fresh.reported(whole)
        assert self.earlier(fresh) == [("c-a", "create")]

    def test_a_difference_tells_none(self) -> None:
        mirror, occupancy = self.mirror()
        telling = welcomed(mirror)
        telling.news()
        self.decided(mirror, occupancy, occupied(occupancy, "c"), "c")
        (report,) = reports(telling)
        assert not report.earlier


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), max_size=20),
    st.lists(st.sampled_from(["silent", "told", "lost", "broken"]), max_size=20),
)
def test_what_is_told_in_differences_adds_up_to_what_is(changes: list[tuple[bool, str]], fates: list[str]) -> None:
    """lost: the report goes out, and is lost with its stream; broken: the extender has it, and its answer is lost."""
    occupancy = Occupancy(generation=1)
    mirror = started(occupancy)
    telling, reader = welcomed(mirror), Mirror()

    def told(*, heard: bool = True, acknowledged: bool = True) -> None:
        for report in reports(telling):
            if heard:
                reader.reported(report)
            if acknowledged:
                telling.acknowledged(pb.Ack(generation=report.generation))

    for index, (comes, name) in enumerate([(True, "a"), *changes]):
        after = occupied(occupancy, name) if comes else occupancy.without_pod(name)
        changed(mirror, occupancy, after)
        occupancy = after
        fate = fates[index] if index < len(fates) else "told"
        if fate != "silent":
            told(heard=fate != "lost", acknowledged=fate == "told")
        if fate in ("lost", "broken"):
            acked = telling.hello("1").hello.acked_generation
            telling.welcomed(pb.Welcome(resume=acked > 0 and acked == reader.occupancy.generation))
    told()
    assert reader.occupancy.seats == occupancy.seats
    assert reader.occupancy.holdings == occupancy.holdings
