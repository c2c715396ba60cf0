"""The graph of who talks to whom: rates that fade, bounds that hold, workloads that outlive their pods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.model.errors import BadTraffic
from numakin.placement.traffic.graph import FORGOTTEN, KINDS, Amount, Costs, Deltas, Flow, Graph, Key, TrafficTally

HALF_LIFE = 100.0
ENDS = st.sampled_from(["a", "b", "c", "d", "e"])
FLOWS = st.builds(
    Flow, ENDS, ENDS, st.sampled_from(KINDS), st.integers(0, 1 << 40), st.integers(0, 1 << 30), st.booleans()
)


def tcp(source: str, target: str, bytes_: int = 1000, messages: int = 10) -> Flow:
    return Flow(source, target, "tcp", bytes_, messages)


def graph(*flows: Flow) -> Graph:
    tally = TrafficTally(HALF_LIFE)
    tally.add(flows, now=0.0)
    return tally.graph(0.0)


class TestDecay:
    def test_traffic_counts_for_half_after_a_half_life(self):
        tally = TrafficTally(HALF_LIFE)
        tally.add([tcp("a", "b")], now=50.0)
        before = tally.graph(50.0).edges[Key("a", "b", "tcp")]
        after = tally.graph(50.0 + HALF_LIFE).edges[Key("a", "b", "tcp")]
        assert after == pytest.approx((before.bytes / 2, before.messages / 2))

    def test_steady_traffic_is_shown_at_its_true_rate(self):
        tally = TrafficTally(HALF_LIFE)
        for second in range(1500):
            tally.add([tcp("a", "b", 3000, 7)], now=float(second))
        assert tally.graph(1499.0).edges[Key("a", "b", "tcp")] == pytest.approx((3000, 7), rel=0.01)

    @pytest.mark.parametrize("half_lives", [1, 300, FORGOTTEN - 1])
    @pytest.mark.parametrize("others", [False, True], ids=["all silent", "others talk"])
    def test_who_talked_with_whom_more_is_known_until_it_is_forgotten(self, half_lives, others):
        tally, late = TrafficTally(HALF_LIFE), half_lives * HALF_LIFE
        tally.add([tcp("a", "b", messages=1), tcp("a", "c", 4000, 4)], now=0.0)
        if others:
            tally.add([tcp("d", "e")], now=late)
        weights = tally.graph(late).weights()
        assert weights["a", "c"] == pytest.approx(4 * weights["a", "b"])

    def test_an_edge_without_news_for_long_is_forgotten_and_not_left_without_a_weight(self):
        tally = TrafficTally(HALF_LIFE)
        tally.add([tcp("a", "b")], now=0.0)
        tally.add([tcp("b", "c")], now=HALF_LIFE)
        assert tally.graph((FORGOTTEN + 1) * HALF_LIFE).weights().keys() == {("b", "c")}
        assert len(tally) == 1

    def test_samples_are_scaled_up(self):
        always, tenth = TrafficTally(HALF_LIFE), TrafficTally(HALF_LIFE)
        always.add([tcp("a", "b", 5000, 50)], now=0.0)
        tenth.add([tcp("a", "b", 500, 5)], now=0.0, scale=10.0)
        assert tenth.graph(0.0).weights() == pytest.approx(always.graph(0.0).weights())

    def test_a_clock_that_stands_still_changes_nothing(self):
        tally = TrafficTally(HALF_LIFE)
        tally.add([tcp("a", "b")], now=5.0)
        assert tally.graph(5.0) == tally.graph(4.0)

    @given(st.lists(FLOWS, max_size=20), st.integers(0, 20))
    def test_flows_of_one_moment_may_come_in_any_parts(self, flows, cut):
        whole, parts = TrafficTally(HALF_LIFE), TrafficTally(HALF_LIFE)
        whole.add(flows, now=1.0)
        parts.add(flows[:cut], now=1.0)
        parts.add(flows[cut:], now=1.0)
        assert parts.graph(1.0).weights() == pytest.approx(whole.graph(1.0).weights())


class TestBounds:
    def test_the_lightest_edges_go_first_and_are_counted(self):
        tally = TrafficTally(HALF_LIFE, most_edges=2)
        tally.add([tcp("a", "b", 0, 5), tcp("a", "c", 0, 1), tcp("a", "d", 0, 9), tcp("a", "e", 0, 2)], now=0.0)
        assert {key.target for key in tally.graph(0.0).edges} == {"b", "d"}
        assert tally.graph(0.0).dropped == tally.dropped == 2

    def test_an_edge_that_faded_goes_before_a_younger_one(self):
        tally = TrafficTally(HALF_LIFE, most_edges=1)
        tally.add([tcp("a", "b", 0, 100)], now=0.0)
        tally.add([tcp("a", "c", 0, 30)], now=2 * HALF_LIFE)
        assert [key.target for key in tally.graph(2 * HALF_LIFE).edges] == ["c"]

    @given(st.lists(FLOWS, max_size=60), st.integers(1, 8))
    def test_the_cap_is_never_exceeded(self, flows, most):
        tally = TrafficTally(HALF_LIFE, most_edges=most)
        for now, flow in enumerate(flows):
            tally.add([flow], now=float(now))
            assert len(tally) <= most

    def test_what_a_pod_says_to_itself_is_nobody_s_kinship(self):
        assert not graph(tcp("a", "a")).edges

    def test_endpoints_that_are_gone_can_be_forgotten(self):
        tally = TrafficTally(HALF_LIFE)
        tally.add([tcp("a", "b"), tcp("b", "c"), tcp("c", "a")], now=0.0)
        tally.forget({"b"})
        assert list(tally.graph(0.0).edges) == [Key("c", "a", "tcp")]

    @pytest.mark.parametrize(
        ("flow", "message"),
        [
            (Flow("a", "b", "carrier pigeon", 1, 1), "'carrier pigeon' is not a kind of traffic; allowed: tcp, udp"),
            (Flow("a", "b", "tcp", -1, 1), "a flow from a has negative counts: -1 bytes, 1 messages"),
            (Flow("", "b", "tcp", 1, 1), "a flow's end must have a name of 1 to 400 characters, not 0"),
            (Flow("a", "b" * 401, "tcp", 1, 1), "a flow's end must have a name of 1 to 400 characters, not 401"),
        ],
        ids=["kind", "negative", "nameless", "long name"],
    )
    @pytest.mark.parametrize("into", [lambda flow: TrafficTally().add([flow], 0.0), lambda flow: Deltas().add([flow])])
    def test_a_flow_that_makes_no_sense_is_refused_by_name(self, flow, message, into):
        with pytest.raises(BadTraffic, match=message):
            into(flow)

    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (lambda: TrafficTally(half_life=0), "a half-life must be a positive number of seconds, not 0"),
            (lambda: TrafficTally(half_life=float("nan")), "not nan"),
            (lambda: TrafficTally(most_edges=0), "the cap on edges must be at least 1, not 0"),
            (lambda: TrafficTally().add([], 0.0, scale=0), "a scale must be a positive number, not 0"),
            (lambda: Costs(per_byte={}), "the cost of a tcp byte must be a number of nanoseconds, not None"),
            (lambda: Costs(per_message=dict.fromkeys(KINDS, -1.0)), "the cost of a tcp message must be .* not -1"),
        ],
    )
    def test_settings_that_make_no_sense_are_refused_by_name(self, build, message):
        with pytest.raises(BadTraffic, match=message):
            build()


class TestWeights:
    def test_a_weight_is_what_crossing_would_cost_each_second(self):
        costs = Costs(dict.fromkeys(KINDS, 1000.0), dict.fromkeys(KINDS, 0.5))
        assert costs.weight("tcp", Amount(bytes=200.0, messages=3.0)) == 3 * 1000.0 + 200 * 0.5

    def test_small_messages_weigh_by_their_number_and_bulk_by_its_bytes(self):
        chatty = graph(tcp("a", "b", 64_000, 1000)).weights()["a", "b"]
        fewer = graph(tcp("a", "b", 64_000, 10)).weights()["a", "b"]
        bulk = graph(tcp("a", "b", 1_000_000_000, 1000)).weights()["a", "b"]
        assert chatty > 10 * fewer
        assert bulk > 10 * chatty

    def test_both_directions_and_all_kinds_are_one_pair(self):
        there = graph(tcp("a", "b"), Flow("b", "a", "unix", 7, 7))
        assert list(there.weights()) == [("a", "b")]


class TestWorkloads:
    def test_replicas_share_what_they_learned(self):
        learned = graph(tcp("web-1", "db-0"), tcp("web-2", "db-0"), tcp("db-0", "10.0.0.7"))
        owners = {"web-1": "shop/Deployment/web", "web-2": "shop/Deployment/web", "db-0": "shop/StatefulSet/db"}
        rolled = learned.rolled_up(owners)
        assert list(rolled.edges) == [Key("shop/Deployment/web", "shop/StatefulSet/db", "tcp")]
        assert sum(rolled.weights().values()) == pytest.approx(
            sum(weight for pair, weight in learned.weights().items() if "10.0.0.7" not in pair)
        )

    def test_replicas_of_one_workload_can_be_each_other_s_kin(self):
        owners = dict.fromkeys(("kafka-0", "kafka-1"), "shop/StatefulSet/kafka")
        rolled = graph(tcp("kafka-0", "kafka-1")).rolled_up(owners)
        assert list(rolled.weights()) == [("shop/StatefulSet/kafka", "shop/StatefulSet/kafka")]


class TestDeltas:
    def test_the_heaviest_are_told_first_and_the_rest_wait(self):
        waiting = Deltas()
        waiting.add([tcp("a", "b", 0, 1), tcp("a", "c", 0, 5)])
        assert waiting.take(1) == [tcp("a", "c", 0, 5)]
        waiting.add([tcp("a", "b", 10, 2)])
        assert waiting.take(9) == [tcp("a", "b", 10, 3)]
        assert waiting.take(9) == []

    @given(st.lists(FLOWS, max_size=30), st.integers(1, 5))
    def test_nothing_is_lost_or_told_twice(self, flows, most):
        waiting = Deltas()
        received = []
        for flow in flows:
            waiting.add([flow])
            received += waiting.take(most - 1)
        received += waiting.take(1000)
        assert sum(entry.bytes for entry in received) == sum(entry.bytes for entry in flows)
        assert sum(entry.messages for entry in received) == sum(entry.messages for entry in flows)

    def test_over_the_cap_the_lightest_go_and_are_counted(self):
        waiting = Deltas(most_edges=1)
        waiting.add([tcp("a", "b", 0, 1), tcp("a", "c", 0, 5)])
        assert (waiting.take(9), waiting.dropped) == ([tcp("a", "c", 0, 5)], 1)
