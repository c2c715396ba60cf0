"""One pod: where it is and why, what else was weighed, whom it talks to, and how it was moved."""

from __future__ import annotations

from heapq import nlargest

from extender.cluster import Cluster
from extender.views.explain import explain
from extender.views.page import Row
from extender.views.page.scene import Line, Scene
from extender.views.page.shares import shares

MOST_PEERS = 50
"""Peers of one answer, the heaviest; `peers_known` says how many there are."""

MOST_SCORED = 20
"""Scored nodes of one answer, the best."""


def pod(cluster: Cluster, scene: Scene, namespace: str, name: str) -> Row | None:
    """What was weighed for the pod and what happened, with its place, its peers and its moves; None when nothing is
    known of it.
    """
    story = explain(cluster, namespace, name, most_nodes=MOST_SCORED)
    return _on_scene({**story, "pod": f"{namespace}/{name}"}, scene) if story is not None else None


def pod_of_uid(cluster: Cluster, scene: Scene, uid: str) -> Row | None:
    """One that is shown by its uid, since its node reports it and nothing names it; as `pod` where something does by
    now.
    """
    namespace, slash, name = scene.name(uid).partition("/")
    answer = pod(cluster, scene, namespace, name) if slash else None
    if answer is not None or uid not in scene.places:
        return answer
    untold: Row = {
        "uid": uid, "pod": scene.name(uid), "summary": "", "group": None, "membership": None, "unscored": None,
        "scored": None, "expected": None, "held": [], "happened": [],
    }  # fmt: skip
    return _on_scene(untold, scene)


def _on_scene(story: Row, scene: Scene) -> Row:
    uid = story["uid"]
    place = scene.places.get(uid)
    lines = scene.lines_of.get(uid, [])
    return {
        **story,
        "group": scene.group_of.get(uid) or story["group"],
        "workload": scene.workload(uid),
        "place": {"node": place.node, "numa_nodes": list(place.numa_nodes)} if place else None,
        "share": shares(lines),
        "peers": _peers(uid, lines, scene),
        "peers_known": len(lines),
        "moves": [row for row in story["happened"] if row["event"] == "move"],
    }


def _peers(uid: str, lines: list[Line], scene: Scene) -> list[Row]:
    heaviest = nlargest(MOST_PEERS, lines, key=lambda line: (line.weight, line.pods))
    total = sum(line.weight for line in lines) or 1.0
    return [
        {
            "uid": peer,
            "pod": scene.name(peer),
            "workload": scene.workload(peer),
            "node": scene.places[peer].node,
            "numa_nodes": list(scene.places[peer].numa_nodes),
            "reach": line.reach,
            "sent": round(line.sent_by(uid), 1),
            "received": round(line.sent_by(peer), 1),
            "messages": round(line.messages, 2),
            "share": round(line.weight / total, 4),
        }
        for line in heaviest
        for peer in [line.peer(uid)]
    ]
