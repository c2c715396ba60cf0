"""A list of the pods that opted in, to look one up by a part of its name."""

from __future__ import annotations

from extender.cluster import Cluster
from extender.views.page import Row
from extender.views.page.scene import Reach, Scene, by_reach
from extender.views.page.shares import shares

MOST_PODS = 200
"""Pods of one answer, in the order of their names; `pods_known` says how many there are."""

MOST_WORDS = 8
"""Words of a search; what comes after is not looked at."""


def pods(cluster: Cluster, scene: Scene, text: str) -> Row:
    """Those that have each word of the text in their name, workload, group or node; all for an empty text."""
    words = text.lower().split()[:MOST_WORDS]
    names = sorted((scene.name(uid), uid) for uid in scene.places)
    matches = [(name, uid) for name, uid in names if _matches(words, name, uid, scene)]
    shown = matches[:MOST_PODS]
    unscored = cluster.unscored([uid for _, uid in shown])
    return {
        "pods": [_row(name, uid, scene) | {"unscored": unscored.get(uid)} for name, uid in shown],
        "pods_known": len(matches),
    }


def _matches(words: list[str], name: str, uid: str, scene: Scene) -> bool:
    if not words:
        return True
    own = f"{name} {scene.workload(uid)} {scene.group_of.get(uid, '')} {scene.places[uid].node}".lower()
    return all(word in own for word in words)


def _row(name: str, uid: str, scene: Scene) -> Row:
    """bytes: a second, with pods that opted in."""
    place = scene.places[uid]
    lines = scene.lines_of.get(uid, [])
    traffic = by_reach(iter(lines))
    return {
        "uid": uid,
        "pod": name,
        "group": scene.group_of.get(uid),
        "workload": scene.workload(uid),
        "node": place.node,
        "numa_nodes": list(place.numa_nodes),
        "bytes": round(sum(traffic[reach] for reach in Reach)),
        "share": shares(lines),
    }
