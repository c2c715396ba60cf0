"""What `status` says of the observer's work: what it sees, has learned, and tells others."""

from __future__ import annotations

import pytest

from enforcer.observer.in_words import in_words
from enforcer.observer.traffic_loop import TrafficView
from numakin.placement.traffic.graph import Amount, Graph, Key

EDGES = Graph({Key("a", "b", "tcp"): Amount(1.0, 1.0), Key("b", "a", "tcp"): Amount(1.0, 1.0)})
SEEN = TrafficView("cgroup_skb", programs="built ahead")
LEARNED = TrafficView("cgroup_skb, wakeups", graph=EDGES, programs="built ahead", learned_at=96.0)


@pytest.mark.parametrize(
    ("view", "extenders", "words"),
    [
        (None, None, "traffic is not observed: observe is off"),
        (TrafficView(), None, "traffic is not seen yet; where that lasts, `numakin-enforcer doctor` says why"),
        (SEEN, None, "traffic is seen by cgroup_skb (built ahead): nothing is learned yet"),
        (LEARNED, None, "traffic is seen by cgroup_skb, wakeups (built ahead): 2 edges, renewed 4 s ago"),
        (
            TrafficView("inet_diag"),
            0,
            "traffic is seen by inet_diag: nothing is learned yet; no extender receives reports",
        ),
        (None, 1, "traffic is not observed: observe is off; 1 extender receives reports"),
        (None, 3, "traffic is not observed: observe is off; 3 extenders receive reports"),
    ],
)
def test_it_says_what_is_seen_learned_and_told(view: TrafficView | None, extenders: int | None, words: str) -> None:
    assert in_words(view, "", extenders, now=100.0) == words


def test_it_says_what_holds_moves_back() -> None:
    held_back = "no running member is moved: move_budget is 0"
    assert in_words(SEEN, held_back, 1, now=100.0).endswith(
        f"nothing is learned yet; {held_back}; 1 extender receives reports"
    )


def test_it_says_why_no_extender_receives_reports() -> None:
    words = in_words(None, "", 0, now=100.0, trouble="extender.numakin.svc:8081: Name or service not known")
    assert words.endswith("no extender receives reports: extender.numakin.svc:8081: Name or service not known")
