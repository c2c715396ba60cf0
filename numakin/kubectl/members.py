"""A group's members as the extender lists them: a row for each pod, or, by one of another version, for each container
that is placed by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numakin.placement.model.cpuset import NumaSet


def by_pod(members: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, NumaSet]]:
    """By uid, the node and all NUMA nodes of the pod."""
    places: dict[str, tuple[str, NumaSet]] = {}
    for member in members:
        uid, here = member["uid"], NumaSet.parse(member["numa_nodes"])
        places[uid] = member["node"], places[uid][1] | here if uid in places else here
    return places
