"""A group's members as the extender lists them: a row for each reservation, of which a pod may have several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from placement.model.cpuset import NumaSet


def by_pod(members: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, NumaSet]]:
    """By uid, the node and all NUMA nodes of the pod: with scope `container` each container has a row."""
    places: dict[str, tuple[str, NumaSet]] = {}
    for member in members:
        uid, here = member["uid"], NumaSet.parse(member["numa_nodes"])
        places[uid] = member["node"], places[uid][1] | here if uid in places else here
    return places
