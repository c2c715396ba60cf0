"""Where pods say by a label which application they are of, groups found by traffic are within applications."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.quality.hubs import HUBS, agreement, labelled, planted, steady
from extender.state.pods import Changes, OwnerRow, PodRow
from extender.traffic.communities import partition
from extender.traffic.known import TrafficLearning
from numakin.placement.traffic.graph import Flow
from tests.extender.traffic.weights import weights_between

NAMES = [f"shop/Deployment/{name}" for name in "abcdef"]
LABEL = "app.kubernetes.io/part-of"


@given(weights_between(NAMES, NAMES), st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["", "x", "y"])))
def test_no_group_has_members_of_two_applications(weights, applications):
    known = dict.fromkeys(NAMES, "") | applications
    groups = partition(weights, NAMES, {}, partition(weights, NAMES, {}), applications=known).groups()
    assert all(len({known[member] for member in members}) == 1 for members in groups.values())


@given(weights_between(NAMES, NAMES))
def test_where_all_say_the_same_it_makes_no_difference(weights):
    same = partition(weights, NAMES, {}, applications=dict.fromkeys(NAMES, "x"))
    assert same.groups() == partition(weights, NAMES, {}).groups()


@pytest.mark.parametrize("kinds", [*((kind,) for kind in HUBS), HUBS], ids=[*HUBS, "all"])
@pytest.mark.parametrize("seed", range(3))
def test_hubs_in_the_applications_own_namespace_join_nobody(kinds, seed):
    with_hubs, without = planted(seed, kinds, together=True), planted(seed, (), together=True)
    assert agreement(with_hubs, without, labelled(with_hubs)) == (1.0, 1.0)
    assert steady(with_hubs, labelled(with_hubs)) == 1.0


def row(name: str, application: str, number: int = 1) -> PodRow:
    labels = {LABEL: application} if application else {}
    return PodRow(
        uid=f"{name}-{number}", namespace="shop", name=f"{name}-{number}", node="n", phase="Running", labels=labels,
        annotations={"group.numakin.io": "auto"}, owner=OwnerRow("Deployment", name),
    )  # fmt: skip


TALK = [
    Flow(f"{source}-1", f"{target}-1", "tcp", 90_000, 900)
    for source, target in (("cart", "db"), ("ads", "db"), ("cart", "web"), ("ads", "page"))
]
"""Two applications that share a database."""
ROWS = (row("cart", "shop"), row("web", "shop"), row("ads", "news"), row("page", "news"), row("db", ""))


def learned(*rows: PodRow, label: str = LABEL) -> dict[str, tuple[str, str]]:
    """By workload its group, and why."""
    learning = TrafficLearning(application_label=label)
    learning.apply(Changes(rows=rows), 0.0)
    learning.receive("n", TALK, 1.0)
    members = learning.known(2.0).found.members
    return {name.rpartition("/")[2]: (member.group, member.reason) for name, member in members.items()}


def test_a_shared_database_that_is_of_none_does_not_join_two_applications():
    found = learned(*ROWS)
    assert found["cart"][0] == found["web"][0] != found["ads"][0] == found["page"][0]
    assert "db" not in found


def test_why_a_workload_is_a_member_names_its_application():
    assert learned(*ROWS)["cart"][1] == "exchanges 100 % of its traffic within application shop with web"


def test_without_the_operators_word_no_label_counts():
    found = learned(*ROWS, label="")
    assert found["db"][0] in {found["cart"][0], found["ads"][0]}
    assert found["db"][1].startswith("exchanges 50 % of its traffic within its namespace with")


def test_while_pods_of_a_workload_differ_the_one_that_says_something_counts():
    """As in a rolling update that adds the label."""
    found = learned(*ROWS[1:], row("cart", "shop"), row("cart", "", 2))
    assert found["cart"][0] == found["web"][0]


def test_a_workload_whose_pods_are_gone_stays_with_its_application():
    learning = TrafficLearning(application_label=LABEL)
    learning.apply(Changes(rows=ROWS), 0.0)
    learning.receive("n", TALK, 1.0)
    before = learning.known(2.0).found
    learning.apply(Changes(gone=tuple(pod.uid for pod in ROWS)), 3.0)
    after = learning.known(4.0).found
    assert {name: member.group for name, member in after.members.items()} == {
        name: member.group for name, member in before.members.items()
    }
