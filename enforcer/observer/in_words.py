"""What the observer sees, has learned and tells others, in words for people."""

from __future__ import annotations

from enforcer.observer.traffic_loop import TrafficView


def in_words(view: TrafficView | None, moves: str, extenders: int | None, now: float, trouble: str = "") -> str:
    """view: None where traffic is not to be observed. moves: what holds them back. extenders: how many receive reports;
    None where there are to be none. now: by the monotonic clock. trouble: why one receives none.
    """
    return "; ".join(filter(None, (_traffic(view, now), moves, _extenders(extenders, trouble))))


def _traffic(view: TrafficView | None, now: float) -> str:
    if view is None:
        return "traffic is not observed: observe is off"
    if view.learned_at is not None:
        edges, ago = len(view.graph.edges), now - view.learned_at
        return f"traffic is seen by {_how(view)}: {edges} edges, renewed {ago:.0f} s ago"
    if view.collector == "none":
        return "traffic is not seen yet; where that lasts, `numakin-enforcer doctor` says why"
    return f"traffic is seen by {_how(view)}: nothing is learned yet"


def _how(view: TrafficView) -> str:
    return f"{view.collector} ({view.programs})" if view.programs else view.collector


def _extenders(count: int | None, trouble: str) -> str:
    match count:
        case None:
            return ""
        case 0:
            return "no extender receives reports" + (f": {trouble}" if trouble else "")
        case 1:
            return "1 extender receives reports"
    return f"{count} extenders receive reports"
