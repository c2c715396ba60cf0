"""`docs/processes.svg`: the processes of a node and of the cluster, and what goes from one to the other."""

from __future__ import annotations

from typing import NamedTuple

from tools.reference.drawing import Box, arrow, sheet, text


class Link(NamedTuple):
    """words: what goes there, one line each. at: where along the line they stand, 0 to 1."""

    start: str
    end: str
    words: tuple[str, ...]
    both: bool = True
    at: float = 0.5


EXTENDER = ("the cluster's state, its traffic", "graph, its plans; scores nodes", "by the enforcers' own decide()")
OBSERVER = ("counts traffic, learns kin,", "plans, offers moves, streams", "reports, serves /metrics")
HOOK = ("owns the node's occupancy;", "answers CreateContainer", "with CPUs and memory nodes")

BOXES = (
    Box("kube-scheduler", 40, 76, 150, 58, ("filter, prioritize",)),
    Box("API server", 40, 184, 150, 58, ("pods, AffinityGroups",)),
    Box("extender", 400, 70, 190, 178, EXTENDER, "ours"),
    Box("observer", 400, 330, 190, 92, OBSERVER, "ours"),
    Box("hook", 400, 520, 190, 92, HOOK, "ours"),
    Box("container runtime", 40, 537, 150, 58, ("containerd, CRI-O (NRI)",)),
    Box("kernel", 40, 347, 150, 58, ("BPF maps, cgroups, /proc",)),
    Box("kubelet", 800, 347, 150, 58, ("podresources",)),
    Box("supervisor", 800, 537, 150, 58, ("starts both again",), "ours"),
)

LINKS = (
    Link("kube-scheduler", "extender", ("HTTP: pod, node names", "→ nodes, scores 0..10")),
    Link("API server", "extender", ("list and watch;", "status, events, one writer")),
    Link("observer", "extender", ("gRPC stream: reports, traffic ↑   nominations, pods that are gone ↓",)),
    Link("observer", "hook", ("unix socket: reports, containers, counts ↑   kin, plan, moves, devices ↓",)),
    Link("container runtime", "hook", ("NRI over ttrpc: events", "→ adjustments, updates")),
    Link("kernel", "observer", ("bytes and messages", "by cgroup and address"), both=False),
    Link("kubelet", "observer", ("devices of each", "container"), both=False),
    Link("supervisor", "hook", ("starts, watches for", "signs of life"), both=False),
)


def picture() -> str:
    boxes = {box.name: box for box in BOXES}
    parts = [
        '<rect class="panel" x="16" y="44" width="958" height="222" rx="8"/>',
        text(28, 36, "once in the cluster", "title", "start"),
        '<rect class="panel" x="16" y="306" width="958" height="324" rx="8"/>',
        text(28, 298, "on each node", "title", "start"),
    ]
    for link in LINKS:
        parts += _drawn(boxes[link.start], boxes[link.end], link)
    parts += [box.svg() for box in BOXES]
    return sheet(990, 650, "The processes, and what goes from one to the other", parts)


def _drawn(start: Box, end: Box, link: Link) -> list[str]:
    if start.middle == end.middle:
        upper, lower = sorted((start, end), key=lambda box: box.top)
        y = (upper.bottom + lower.top) / 2
        line = arrow([(upper.middle, upper.bottom), (lower.middle, lower.top)], both=link.both)
        return [line, text(upper.middle + 12, y + 4, link.words[0], "small", "start")]
    left, right = sorted((start, end), key=lambda box: box.left)
    ends = ((left.left + left.width, left.top + left.height / 2), (right.left, _height(left, right)))
    points = ends if start is left else ends[::-1]
    x = ends[0][0] + (ends[1][0] - ends[0][0]) * link.at
    y = ends[0][1] + (ends[1][1] - ends[0][1]) * link.at
    words = [text(x, y - 20 + 13 * row, line, "small") for row, line in enumerate(link.words)]
    return [arrow(points, both=link.both), *words]


def _height(left: Box, right: Box) -> float:
    """Where the line meets the right box: level with the left one, as far as that goes."""
    return min(max(left.top + left.height / 2, right.top + 20), right.bottom - 20)
