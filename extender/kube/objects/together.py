"""The condition that tells whether a group is on one node, and if not, what could be done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from extender.kube.objects.affinitygroup import GroupCondition
from extender.planning.regrouping import Regroupings, WhyApart
from extender.state.groups import Member
from extender.views.regroup import sentence

TOGETHER = "Together"
"""The condition's type."""

REASONS = {
    WhyApart.SETTLING: "Settling",
    WhyApart.FIXED: "Fixed",
    WhyApart.NO_PLACE: "NoBetterPlace",
    WhyApart.TOO_LARGE: "TooLarge",
    WhyApart.TOO_MANY: "TooManyCutGroups",
}


def together(
    group: str, members: Iterable[Member], found: Regroupings, before: GroupCondition | None, now: str
) -> GroupCondition | None:
    """None for a group of fewer than two pods. found: by the latest search. before: as it is at the API server. now:
    as `GroupCondition.since`.
    """
    by_node = Counter(member.node for member in members)
    if by_node.total() < 2:
        return None
    if len(by_node) == 1:
        after = GroupCondition(TOGETHER, "True", "OneNode", f"its pods are on {next(iter(by_node))}", now)
    elif (planned := found.plans.get(group)) is not None:
        text = f"{sentence(planned)}; kubectl numakin regroup shows which"
        after = GroupCondition(TOGETHER, "False", "CanBeRegrouped", text, now)
    elif (apart := found.apart.get(group)) is not None:
        after = GroupCondition(TOGETHER, "False", REASONS[apart.why], sentence(apart), now)
    elif before is not None and before.status == "False":
        return before
    else:
        text = f"cut over {len(by_node)} nodes; whether more of it could be together is looked for"
        after = GroupCondition(TOGETHER, "False", "NotSearched", text, now)
    return after.after(before)
