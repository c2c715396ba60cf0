"""What is published for others: a NodeResourceTopology for each node, an AffinityGroup for each group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from extender.kube.objects.affinitygroup import EdgeStatus, GroupCondition, GroupStatus, MemberStatus, affinity_group
from extender.kube.objects.grouprows import GroupRow
from extender.kube.objects.nrt import topology
from extender.kube.objects.saved_learning import Text
from extender.kube.publish import Desired
from extender.picture import Picture
from extender.planning.regrouping import NOT_SEARCHED, Regroupings, WhyApart
from extender.state.groups import Member, locality
from extender.state.node_view import NodeView
from extender.state.pods import Changes, NodeRow
from extender.traffic.learned import LearnedGroup
from extender.views.readout import IsLive, members
from extender.views.regroup import sentence
from numakin.placement.state.occupancy import Occupancy

TOGETHER = "Together"
"""The condition's type."""

REASONS = {
    WhyApart.SETTLING: "Settling",
    WhyApart.FIXED: "Fixed",
    WhyApart.NO_PLACE: "NoBetterPlace",
    WhyApart.TOO_LARGE: "TooLarge",
    WhyApart.TOO_MANY: "TooManyCutGroups",
}


class TopologyPublisher:
    """Remembers each node's object while what its enforcer reported stays the same: most of thousands do.

    `nodes_changed` is called from the watch's thread, `objects` from the publisher's.
    """

    def __init__(self) -> None:
        self._uids: dict[str, str] = {}
        self._nodes: dict[str, tuple[Occupancy, str, Desired]] = {}

    def nodes_changed(self, changes: Changes[NodeRow]) -> None:
        """Node objects came, or went."""
        kept = {} if changes.whole else {name: uid for name, uid in self._uids.items() if name not in changes.gone}
        self._uids = kept | {row.name: row.uid for row in changes.rows}

    def objects(self, picture: Picture, live: IsLive) -> Iterator[Desired]:
        """As they should be now, for the nodes that have a Node object. A node without a live enforcer keeps what was
        last published of it.
        """
        uids = self._uids
        self._nodes = {
            node_state.view.name: self._node(node_state.view, uids[node_state.view.name])
            for node_state in picture.nodes
            if node_state.view.name in uids and live(node_state)
        }
        return (desired for _, _, desired in self._nodes.values())

    def _node(self, view: NodeView, uid: str) -> tuple[Occupancy, str, Desired]:
        before = self._nodes.get(view.name)
        if before is not None and before[0] is view.reported and before[1] == uid:
            return before
        return view.reported, uid, topology(view.name, view.machine, view.reported, uid)


def groups(
    picture: Picture, texts: Mapping[str, Text], rows: Mapping[str, GroupRow], regroupings: Regroupings = NOT_SEARCHED
) -> Iterator[Desired]:
    """As they should be now: one object for each group that has members, or of which something is known, or that has
    an object. texts: what was learned; rows: what is there; both by group. What an enforcer alone says of a group makes
    no object: it could name any number of them, in every namespace.
    """
    by_group = members(picture)
    found = {group for group in by_group.keys() - rows.keys() if _has_pod(group, by_group[group], picture)}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for group in sorted(found | texts.keys() | rows.keys()):
        status = _group(group, by_group.get(group, []), picture, texts.get(group))
        row = rows.get(group)
        before = row.conditions.get(TOGETHER) if row else None
        condition = _together(group, by_group.get(group, []), regroupings, before, now)
        status = replace(status, conditions=(condition,) if condition is not None else ())
        yield affinity_group(replace(status, accepted=row.judged(now), uid=row.uid) if row else status)


def _together(
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


def _has_pod(group: str, reserved: list[Member], picture: Picture) -> bool:
    """Whether the API server has one of these pods in the group's namespace, and on no other node."""
    namespace, _, _ = group.partition("/")
    known = ((member, picture.rows.get(member.reservation.pod)) for member in reserved)
    return any(
        row is not None and row.namespace == namespace and row.node in ("", member.node) for member, row in known
    )


def _group(group: str, reserved: list[Member], picture: Picture, text: Text | None) -> GroupStatus:
    namespace, _, name = group.partition("/")
    shown = tuple(_member(member, picture) for member in reserved if member.reservation.pod in picture.names)
    if text is None:
        return GroupStatus(namespace, name, shown, locality(reserved))
    return GroupStatus(namespace, name, shown, locality(reserved), _edges(text.learned), text.text)


def _member(member: Member, picture: Picture) -> MemberStatus:
    _, _, name = picture.names[member.reservation.pod].partition("/")
    workload = picture.workloads.get(member.reservation.pod, "").partition("/")[2]
    return MemberStatus(name, member.node, "" if member.expected else str(member.reservation.numa_nodes), workload)


def _edges(learned: LearnedGroup) -> tuple[EdgeStatus, ...]:
    """Of all kinds of traffic together."""
    sizes: Counter[tuple[str, str]] = Counter()
    messages: Counter[tuple[str, str]] = Counter()
    for key, rate in learned.edges.items():
        sizes[key[:2]] += round(rate.bytes)
        messages[key[:2]] += round(rate.messages)
    return tuple(EdgeStatus(*pair, sizes[pair], messages[pair]) for pair in sorted(sizes))
