"""What other namespaces send, and exchange among themselves, changes no group and no reason of a namespace."""

from __future__ import annotations

import pytest
from hypothesis import given

from extender.state.pods import Changes, OwnerRow, PodRow
from extender.traffic.communities import partition
from extender.traffic.known import ClusterTraffic, TrafficLearning
from numakin.placement.namespaces import AFFINITY_KEY, Namespaces, read
from numakin.placement.traffic.graph import Flow
from tests.extender.traffic.weights import weights_between

SHOP = [f"shop/Deployment/{name}" for name in "abcdef"]
OTHERS = [f"{namespace}/Deployment/{name}" for namespace in ("attacker", "shop-2") for name in "abc"]

own, foreign = weights_between(SHOP, SHOP), weights_between(OTHERS, SHOP + OTHERS)


@given(own, foreign, own, foreign)
def test_a_namespace_is_grouped_as_if_it_were_alone(before, foreign_before, now, foreign_now):
    """With what was found before too."""
    alone = partition(now, SHOP, {SHOP[0]: "shop/orders"}, partition(before, SHOP, {}))
    everybody = SHOP + OTHERS
    crowded = partition(
        now | foreign_now, everybody, {SHOP[0]: "shop/orders"}, partition(before | foreign_before, everybody, {})
    )
    assert {name: member for name, member in crowded.members.items() if name in SHOP} == alone.members


@given(foreign)
def test_every_member_s_group_is_of_its_own_namespace(weights):
    made = partition(weights, SHOP + OTHERS, {})
    assert all(member.group.partition("/")[0] == name.partition("/")[0] for name, member in made.members.items())


def row(namespace: str, name: str, number: int) -> PodRow:
    return PodRow(
        uid=f"{namespace}-{name}", namespace=namespace, name=name, node="n", ip=f"10.0.0.{number}", phase="Running",
        annotations={"group.numakin.io": "auto"}, owner=OwnerRow("Deployment", name),
    )  # fmt: skip


ROWS = [row(namespace, name, 10 * at + number)
        for at, namespace in enumerate(("shop", "attacker")) for number, name in enumerate("abcd", 1)]  # fmt: skip
TALK = [
    Flow("shop-a", "shop-b", "tcp", 90_000, 900), Flow("shop-b", "shop-a", "tcp", 20_000, 900),
    Flow("shop-c", "shop-d", "tcp", 50_000, 500), Flow("shop-d", "shop-c", "tcp", 10_000, 500),
]  # fmt: skip
FLOOD = [
    Flow(f"attacker-{source}", f"shop-{target}", "tcp", 10**9, 10**6) for source in "abcd" for target in "abcd"
] + [Flow("attacker-a", f"attacker-{target}", "tcp", 10**9, 10**6) for target in "bcd"]
AS_A_RELAY = [
    flow
    for source, target in (("attacker-a", "shop-b"), ("attacker-b", "shop-b"), ("shop-b", "attacker-c"), ("shop-b", "attacker-d"))
    for flow in (Flow(source, target, "tcp", 10**9, 10**6), Flow(target, source, "tcp", 10**7, 10**6))
]  # fmt: skip
"""As if shop's b passed on to two of the attacker's what two others of its send."""


ALL = read({AFFINITY_KEY: "*"})[0]
APART, JOINED = Namespaces(), Namespaces({"shop": ALL, "attacker": ALL})


def known_of(flows: list[Flow], namespaces: Namespaces) -> ClusterTraffic:
    learning = TrafficLearning()
    learning.set_namespaces(namespaces)
    learning.apply(Changes(rows=tuple(ROWS)), 0.0)
    learning.receive("n", flows, 1.0)
    return learning.known(2.0)


def of_shop(known: ClusterTraffic) -> dict[str, tuple[str, str]]:
    return {
        name: (member.group, member.reason) for name, member in known.found.members.items() if name.startswith("shop/")
    }


@pytest.mark.parametrize("sent", [FLOOD, AS_A_RELAY], ids=["a flood", "as if it were passed on"])
@pytest.mark.parametrize("namespaces", [APART, JOINED], ids=["apart", "joined"])
def test_who_floods_another_namespace_changes_no_group_and_no_reason_there(sent: list[Flow], namespaces: Namespaces):
    known = known_of(TALK + sent, namespaces)
    assert of_shop(known) == of_shop(known_of(TALK, namespaces)) != {}
    assert all(group.partition("/")[0] == name.partition("/")[0] for name, group in known.groups.items())


def test_where_both_namespaces_allow_it_their_pods_still_draw_each_other():
    assert "attacker/Deployment/a" in known_of(TALK + FLOOD, JOINED).peers["shop/Deployment/a"]
    assert "attacker/Deployment/a" not in known_of(TALK + FLOOD, APART).peers["shop/Deployment/a"]
