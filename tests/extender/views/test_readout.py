"""How much of a cluster one answer tells."""

from __future__ import annotations

from extender.cluster import Cluster
from extender.views.readout import MOST_MEMBERS, groups
from tests.extender.running import reservation
from tests.extender.told import clock, cluster, tell

__all__ = ["clock", "cluster"]


def test_groups_of_one_answer_have_a_bounded_number_of_members_but_one_is_always_told(cluster: Cluster) -> None:
    half = MOST_MEMBERS // 2
    sizes = {"default/a": half, "default/b": half, "default/c": 1, "default/d": MOST_MEMBERS + 1}
    for number, (group, size) in enumerate(sizes.items()):
        members = [reservation(f"{group}-{at}", "0", group=group, milli=1) for at in range(size)]
        tell(cluster, f"n{number}", *members)
    pages = []
    for after in ("", "default/b", "default/c"):
        page = groups(cluster.picture(), after=after)
        pages.append(([row["group"] for row in page.rows], page.remaining))
    assert pages == [(["default/a", "default/b"], 2), (["default/c"], 1), (["default/d"], 0)]
