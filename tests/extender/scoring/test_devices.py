"""Where pods with devices, and the groups that they belong to, are expected: near to devices that are free."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.scoring.predict import Wanted
from extender.scoring.strict import NO_DEVICE
from extender.state.node_report import Report
from extender.state.node_view import NodeView
from extender.state.pods import Changes, ContainerRow, PodRow
from numakin.placement.model.live_usage import Live
from numakin.placement.state.occupancy import Reservation, fingerprint
from tests.extender.machines import pod
from tests.extender.running import machine, reservation
from tests.extender.told import scores

GPU = "example.com/gpu"
NODES = ("a", "b")


def tell(cluster: Cluster, node: str, free: dict[int, int], *there: Reservation, generation: int = 1) -> None:
    """free: GPUs by the mask of the NUMA nodes that they are near to."""
    cluster.connected(node)
    live = Live(devices={(GPU, mask): count for mask, count in free.items()})
    report = Report(generation, 0, fingerprint(there, []), tuple(there), live=live)
    cluster.reported(NodeView(node, "session", "1", machine()), report)


def trainer(uid: str, gpus: int = 1, **keys: str) -> PodRow:
    row = pod(uid, **keys)
    container = replace(
        row.containers[0], requests={**row.containers[0].requests, GPU: str(gpus)}, limits={GPU: str(gpus)}
    )
    return replace(row, containers=(container,))


def asked(cluster: Cluster, row: PodRow) -> Wanted:
    wanted = cluster.wanted(row)
    assert wanted is not None
    return wanted


def goes(cluster: Cluster, row: PodRow, *nodes: str) -> tuple[str, str]:
    """The node that leads, and the NUMA nodes that are held there."""
    cluster.score(asked(cluster, row), nodes or NODES)
    held = next(held for held in cluster.picture().assumed if held.pod == row.uid)
    return held.node, str(held.numa_nodes)


@pytest.mark.parametrize(
    ("free", "numa_node"), [({1: 0, 2: 1}, "1"), ({1: 1, 2: 0}, "0"), ({3: 1}, "0"), ({0: 1}, "0")]
)
def test_a_pod_is_expected_on_the_numa_node_that_has_a_device_left(
    cluster: Cluster, free: dict[int, int], numa_node: str
):
    """Of a device near to both, or to nothing known, nothing follows."""
    tell(cluster, "a", free)
    assert goes(cluster, trainer("t"), "a") == ("a", numa_node)


def test_one_that_asks_for_two_goes_where_two_are(cluster: Cluster):
    tell(cluster, "a", {1: 1, 2: 2})
    assert goes(cluster, trainer("t", 2), "a") == ("a", "1")


def test_a_device_that_an_expected_pod_will_have_is_not_counted_again(cluster: Cluster):
    tell(cluster, "a", {1: 1, 2: 1})
    homes = {goes(cluster, trainer(f"t{at}", group=f"g{at}"), "a")[1] for at in range(2)}
    assert homes == {"0", "1"}
    view = cluster.view("a")
    assert view is not None
    assert set(view.occupancy.live.devices.values()) == {0}
    cluster.apply_pods(Changes(gone=("t0",)))
    view = cluster.view("a")
    assert view is not None
    assert sorted(view.occupancy.live.devices.values()) == [0, 1]


def test_its_kin_follow_the_pod_with_the_device(cluster: Cluster):
    tell(cluster, "a", {1: 0, 2: 1})
    assert [goes(cluster, row, "a")[1] for row in (trainer("t"), pod("k1"), pod("k2"))] == ["1", "1", "1"]


def test_a_group_begins_where_a_device_is_left_for_the_pod_that_is_still_to_come(cluster: Cluster):
    """The pod without one comes first: to the node that has one, and to the NUMA node near it."""
    tell(cluster, "a", {1: 0, 2: 0})
    tell(cluster, "b", {1: 0, 2: 1})
    first, later = pod("feeder"), trainer("t")
    cluster.apply_pods(Changes(rows=(first, later)))
    assert goes(cluster, first) == ("b", "1")
    assert goes(cluster, later, "b") == ("b", "1")


def test_a_node_that_says_nothing_of_devices_comes_after_one_that_has_them(cluster: Cluster):
    tell(cluster, "a", {})
    tell(cluster, "b", {2: 1})
    first = pod("feeder")
    cluster.apply_pods(Changes(rows=(first, trainer("t"))))
    assert goes(cluster, first) == ("b", "1")


def test_where_no_node_says_anything_all_is_as_without_devices(cluster: Cluster):
    for node in NODES:
        tell(cluster, node, {})
    plain = scores(cluster, asked(cluster, pod("p")), *NODES)
    cluster.apply_pods(Changes(gone=("p",)))
    assert scores(cluster, asked(cluster, trainer("p")), *NODES) == plain


def test_a_node_on_which_the_device_would_be_far_comes_after_the_others(cluster: Cluster):
    tell(cluster, "a", {1: 1}, reservation("full", "0", milli=8000, group="default/other"))
    tell(cluster, "b", {1: 1})
    assert goes(cluster, trainer("t", cpu="4")) == ("b", "0")


def test_however_much_kin_draws_there(cluster: Cluster):
    full, kin = reservation("full", "0", milli=8000), reservation("kin", "1", group="default/shop")
    tell(cluster, "a", {1: 1}, full, kin)
    tell(cluster, "b", {1: 1}, *(reservation(f"busy-{home}", home, milli=6000, group="default/other") for home in "01"))
    assert goes(cluster, trainer("t", cpu="1")) == ("b", "0")


STRICT = {"policy": "single-numa-node", "cpu": "4"}


class TestStrict:
    """Policy single-numa-node, with a filter that may refuse."""

    def test_a_node_without_room_near_a_free_device_is_refused_by_that_reason(self, cluster: Cluster):
        tell(cluster, "a", {1: 1, 2: 0}, reservation("full", "0", milli=8000))
        tell(cluster, "b", {1: 1, 2: 0})
        refused = cluster.refusals(asked(cluster, trainer("t", **STRICT)), NODES)
        assert {node: refusal.why for node, refusal in refused.items()} == {"a": NO_DEVICE}
        assert not refused["a"].hopeless

    def test_what_others_of_its_group_will_ask_for_refuses_nothing(self, cluster: Cluster):
        tell(cluster, "a", {1: 1, 2: 0}, reservation("full", "0", milli=8000, group="default/other"))
        first = pod("feeder", **STRICT)
        cluster.apply_pods(Changes(rows=(first, trainer("t", **STRICT))))
        assert cluster.refusals(asked(cluster, first), ["a"]) == {}
        assert scores(cluster, asked(cluster, first), "a")["a"] > 0


def test_a_container_asks_for_devices_by_whole_numbers_of_resources_that_are_not_kubernetes_own():
    row = ContainerRow(
        "main", {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi", "a.io/x": "2"}, {"b.io/y": "1", "c.io/z": "0"}
    )
    assert row.devices == {"a.io/x": 2, "b.io/y": 1}


@pytest.mark.parametrize(
    ("text", "count"),
    [("3k", 3000), ("1500", 1500), ("2Ki", 2048), ("500m", 0), ("-1", 0), ("1e99", 0), ("\u0663", 0), ("few", 0)],
)
def test_devices_are_counted_as_the_api_server_writes_numbers(text, count):
    """It writes 3000 as 3k."""
    assert dict(ContainerRow("main", {GPU: text}).devices) == ({GPU: count} if count else {})


def test_init_containers_give_their_devices_back_and_sidecars_keep_them():
    containers = tuple(
        ContainerRow(name, {GPU: count}, init=init, restartable=stays)
        for name, count, init, stays in (("i", "3", True, False), ("s", "1", True, True), ("m", "1", False, False))
    )
    assert replace(pod("p"), containers=containers).devices == ((GPU, 3),)
