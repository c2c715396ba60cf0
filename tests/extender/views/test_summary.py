"""Why a pod is where it is, in one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.state.node_report import DecisionRow
from extender.state.pods import Changes
from extender.views.explain import explain
from extender.views.nearness import Nearness, Whereabouts
from extender.views.summary import sentence
from numakin.placement.decide.choice import NOMINATED
from numakin.placement.decide.decide import Reason
from numakin.placement.model.cpuset import NumaSet
from tests.extender.machines import pod, want
from tests.extender.running import reservation
from tests.extender.told import tell

HERE = Whereabouts("xeon", NumaSet.parse("0"))
MOST, FEW = Nearness(88, 100, traffic=True), Nearness(1, 4, traffic=False)
KIN = Reason("its kin are near", "88%", "NUMA node 0")
EMPTIEST = Reason("no kin here", "", "the emptiest that fits is NUMA node 0")


def decided(*reasons: Reason, event: str = "create") -> DecisionRow:
    return DecisionRow("u", "shop", "cart-0", "cart", event, "0", "0-7", "0", 1.0, reasons, "kept", "0", 1)


BY_NOMINATION = decided(Reason(NOMINATED, "", "NUMA node 0"))
FITS_NOT = Reason("fits nowhere", "400 CPUs", "left open over all 2 NUMA nodes")
ANOTHERS = Reason("another owner", "", "the cpuset (cpus 0-3, mems -) is somebody else's")

CASES = {
    "its kin drew it": (decided(KIN), None, MOST, "is on NUMA node 0 of xeon because 88% of what it talks with is there"),
    "a nomination is explained by what it was made for": (
        BY_NOMINATION, KIN, MOST, "is on NUMA node 0 of xeon because 88% of what it talks with is there",
    ),
    "it was the first": (
        BY_NOMINATION, EMPTIEST, MOST,
        "is on NUMA node 0 of xeon because it was the emptiest that fits, and no kin were there when it came; " + str(MOST)
        + " now",
    ),
    "its kin have gone": (
        decided(KIN), None, FEW,
        "is on NUMA node 0 of xeon because its kin were near when it came; 1 of the 4 others of its group is there now",
    ),
    "another replica of the extender was asked": (
        BY_NOMINATION, None, None, "is on NUMA node 0 of xeon because the extender nominated it",
    ),
    "a reason of another kind": (
        decided(Reason("machine", "NUMA node 1", "has other CPUs or memory than before")), None, None,
        "is on NUMA node 0 of xeon: machine NUMA node 1: has other CPUs or memory than before",
    ),
    "it was there before its enforcer began": (
        None, None, MOST, "is on NUMA node 0 of xeon because 88% of what it talks with is there",
    ),
    "it fits nowhere": (
        decided(FITS_NOT), EMPTIEST, FEW,
        "is left open on xeon: fits nowhere 400 CPUs: left open over all 2 NUMA nodes",
    ),
    "another owner has it": (
        decided(ANOTHERS, event="yielded"), None, None,
        "is left open on xeon: another owner: the cpuset (cpus 0-3, mems -) is somebody else's",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("decision", "predicted", "near", "says"), CASES.values(), ids=CASES)
def test_it_says_where_and_because_of_what(decision, predicted, near, says) -> None:
    decisions = (decision,) if decision is not None else ()
    assert sentence("cart-0", HERE, decisions, predicted, near, held=False) == f"cart-0 {says}"


def test_a_second_container_follows_the_first_one_s_reason() -> None:
    follows = decided(Reason("its pod is there", "", "NUMA node 0"))
    says = "cart-0 is on NUMA node 0 of xeon because 88% of what it talks with is there"
    assert sentence("cart-0", HERE, (decided(KIN), follows), None, MOST, held=False) == says
    alone = sentence("cart-0", HERE, (follows,), None, None, held=False)
    assert alone == "cart-0 is on NUMA node 0 of xeon because its pod was there already"


def test_one_container_that_is_left_open_is_named_beside_where_the_others_are() -> None:
    none = Reason("policy none", "", "CPUs and memory are left open")
    sidecar = replace(decided(none), container="proxy")
    says = (
        "cart-0 is on NUMA node 0 of xeon because 88% of what it talks with is there"
        "; its container proxy is left open: policy none: CPUs and memory are left open"
    )
    for decisions in ((decided(KIN), sidecar), (sidecar, decided(KIN))):
        assert sentence("cart-0", HERE, decisions, None, MOST, held=False) == says


def test_of_a_container_its_latest_decision_counts() -> None:
    later = decided(Reason("room", "", "there is room on NUMA node 0"), event="room")
    says = sentence("cart-0", HERE, (decided(FITS_NOT), later), None, None, held=False)
    assert says == "cart-0 is on NUMA node 0 of xeon because there is room by now"


def test_one_that_is_home_again_is_there_for_what_led_it_there_first() -> None:
    home = decided(Reason("home again", "NUMA node 0", "cool"), KIN, event="home again")
    assert sentence("cart-0", HERE, (home,), None, MOST, held=False).endswith(
        "because 88% of what it talks with is there"
    )


@pytest.mark.parametrize(
    ("near", "others", "says"),
    [
        (1, 1, "the other pod of its group is there"),
        (0, 1, "the other pod of its group is not there"),
        (4, 4, "all 4 others of its group are there"),
        (1, 4, "1 of the 4 others of its group is there"),
        (0, 4, "0 of the 4 others of its group are there"),
    ],
)
def test_where_no_traffic_is_known_the_others_of_its_group_are_counted(near: int, others: int, says: str) -> None:
    assert str(Nearness(near, others, traffic=False)) == says


def test_one_that_is_let_out_is_said_to_run_elsewhere() -> None:
    out = replace(HERE, let_out=NumaSet.parse("1"))
    says = "cart-0 runs on NUMA node 1 of xeon while its home, NUMA node 0, is hot"
    assert sentence("cart-0", out, (decided(KIN),), None, MOST, held=False) == says


def test_of_one_that_is_nowhere_nothing_is_said_but_that_it_was_left_open() -> None:
    assert sentence("cart-0", None, (decided(KIN),), KIN, None, held=False) == ""
    assert sentence("cart-0", None, (decided(FITS_NOT),), None, None, held=False).startswith(
        "cart-0 is left open: fits"
    )


def summary(cluster: Cluster, name: str) -> str:
    answer = explain(cluster, "default", name)
    assert answer is not None
    return str(answer["summary"])


def test_of_a_pod_that_was_scored_it_says_where_its_room_is_held(cluster: Cluster) -> None:
    tell(cluster, "a", reservation("kin", "1"))
    tell(cluster, "b")
    cluster.apply_pods(Changes(rows=(pod("p"), pod("kin", node="a")), whole=True))
    cluster.score(want("p"), ["a", "b"])
    assert summary(cluster, "p") == "room is held for p on NUMA node 1 of a because the other pod of its group is there"


def test_traffic_counts_more_than_the_group_once_it_is_known(cluster: Cluster) -> None:
    tell(cluster, "a", reservation("near", "1"), reservation("far", "0"))
    tell(cluster, "b")
    cluster.learned(replace(cluster.known, partners={"p": {"near": 3.0, "far": 1.0, "gone": 9.0}}))
    cluster.apply_pods(Changes(rows=(pod("p"), pod("near", node="a"), pod("far", node="a")), whole=True))
    cluster.score(want("p"), ["a", "b"])
    assert summary(cluster, "p") == "room is held for p on NUMA node 1 of a because 75% of what it talks with is there"
