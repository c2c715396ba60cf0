"""What Prometheus sees of groups: as if each member were looked at, however often the cluster has changed since."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.cluster import Cluster
from extender.state.groups import locality
from extender.state.node_report import Report
from extender.state.node_view import NodeView
from extender.state.pods import Changes
from extender.views import group_metrics
from extender.views.group_metrics import GroupGauges, NumaNodeSize, possible
from extender.views.group_sums import MemberSum
from extender.views.readout import members
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Occupancy, Reservation, fingerprint
from tests.machines import GIB, SMALL
from tests.numakin.placement.asking import demand

LARGEST = NumaNodeSize.of(SMALL)
NODES = ("n1", "n2", "n3")


def group(*numa_nodes: int, of: Demand) -> MemberSum:
    """Members on SMALL, two NUMA nodes of 4 CPUs and 8 GiB each, by where they are."""
    places = {("n1", NumaSet.of([numa_node])): numa_nodes.count(numa_node) for numa_node in numa_nodes}
    count = len(numa_nodes)
    return MemberSum(places, count, count * of.cpu_milli, count * of.memory)


@pytest.mark.parametrize(
    ("members", "asked", "best"),
    [
        (4, demand(1), 1.0),
        (8, demand(1), 2 * 4 * 3 / (8 * 7)),
        (5, demand(1), 4 * 3 / (5 * 4)),
        (4, Demand(100, 3 * GIB), 2 * 2 * 1 / (4 * 3)),
        (3, demand(5), 0.0),
        (3, Demand(), 1.0),
    ],
    ids=[
        "all on one",
        "half on each",
        "one is left over",
        "memory decides",
        "none fits beside another",
        "nothing asked",
    ],
)
def test_as_many_as_fit_share_a_numa_node(members: int, asked: Demand, best: float) -> None:
    assert possible(group(*[0] * members, of=asked), LARGEST) == pytest.approx(best)


def test_what_is_reached_is_never_more_where_everybody_fits() -> None:
    packed = group(0, 0, 0, 0, 1, 1, 1, 1, of=demand(1))
    assert packed.locality == pytest.approx(possible(packed, LARGEST))


def test_without_any_machine_nothing_is_possible() -> None:
    assert possible(group(0, 0, of=demand(1)), NumaNodeSize()) == 0.0


def shown(gauges: GroupGauges) -> dict[str, float]:
    """The locality of each group."""
    return dict(next(values for name, _, _, values in gauges() if name.endswith("locality_ratio")))


def report(cluster: Cluster, node: str, generation: int, reservations: tuple[Reservation, ...]) -> None:
    cluster.connected(node)
    whole = Report(generation, 0, fingerprint(reservations, ()), reservations)
    cluster.reported(NodeView(node, "s", "1", SMALL, Occupancy().on(SMALL)), whole)


pods = st.builds(
    lambda number, group, numa_nodes: Reservation(
        f"p{number}",
        f"p{number}",
        group,
        NumaSet.of(numa_nodes),
        demand(1),
        workload=f"default/Deployment/w{number % 3}",
    ),
    st.integers(0, 9),
    st.sampled_from(["default/shop", "default/mail", ""]),
    st.sampled_from([(0,), (1,), (0, 1)]),
)
reports = st.lists(
    st.tuples(st.sampled_from(NODES), st.lists(pods, max_size=6, unique_by=lambda pod: pod.key)), max_size=8
)


@given(reports)
def test_sums_are_what_a_walk_over_all_members_gives(sent: list[tuple[str, list[Reservation]]]) -> None:
    cluster = Cluster()
    gauges = GroupGauges(cluster.figures)
    for generation, (node, reservations) in enumerate(sent, 1):
        report(cluster, node, generation, tuple(reservations))
        walked = {name: locality(those) for name, those in members(cluster.picture()).items() if len(those) > 1}
        assert shown(gauges) == pytest.approx(walked)


def test_a_group_that_was_found_counts_the_members_of_all_its_workloads() -> None:
    cluster = Cluster()
    found = {"default/Deployment/web": "default/auto-1", "default/Deployment/db": "default/auto-1"}
    gauges = GroupGauges(lambda: replace(cluster.figures(), groups=found))
    together = [
        Reservation(uid, uid, "", NumaSet.of((0,)), demand(1), workload=f"default/Deployment/{workload}")
        for uid, workload in (("p1", "web"), ("p2", "web"), ("p3", "db"), ("p4", "other"))
    ]
    report(cluster, "n1", 1, tuple(together))
    assert shown(gauges) == {"default/auto-1": 1.0}
    report(cluster, "n1", 2, (*together[:2], replace(together[2], numa_nodes=NumaSet.of((1,)))))
    assert shown(gauges) == {"default/auto-1": pytest.approx(1 / 3)}
    cluster.apply_nodes(Changes(gone=("n1",)))
    assert shown(gauges) == {}


def test_the_largest_groups_have_series_and_all_are_counted(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that whoever names groups can't fill Prometheus with them."""
    monkeypatch.setattr(group_metrics, "MOST_GROUPS", 2)
    sizes = {"default/large": 3, "default/b": 2, "default/a": 2, "default/alone": 1}
    members = [(f"{name}-{at}", name) for name, size in sizes.items() for at in range(size)]
    report(cluster, "n1", 1, tuple(Reservation(uid, uid, name, NumaSet.of([0]), demand(1)) for uid, name in members))
    gauges = GroupGauges(cluster.figures)
    assert {*shown(gauges)} == {"default/large", "default/a"}
    assert next(values for name, _, _, values in gauges() if name == "numakin_extender_groups") == {"": 3.0}
