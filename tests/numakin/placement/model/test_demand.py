"""What a container or pod needs: Kubernetes' quantities, cgroup settings, a pod's effective demand."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.model.demand import Demand, from_cgroup, from_resources, of_pod, own_resources, quantity
from numakin.placement.model.errors import BadQuantity

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("1", 1), ("1.5", Decimal("1.5")), (".5", Decimal("0.5")), ("2.", 2), ("500m", Decimal("0.5")),
        ("250u", Decimal("0.00025")), ("3n", Decimal("3e-9")), ("1k", 1000), ("2M", 2_000_000), ("1Ki", 1024),
        ("1Gi", GIB), ("1.5Gi", 3 * GIB // 2), ("1e3", 1000), ("12E-1", Decimal("1.2")), ("1E", 10**18), ("+2", 2),
        ("-1", -1), ("9223372036854775807", 2**63 - 1),
    ],
)  # fmt: skip
def test_a_quantity_is_read_as_kubernetes_writes_it(text, number):
    assert quantity(text) == number


@pytest.mark.parametrize(
    "text", ["", " 1", "1 Gi", "1gi", "1K", "Gi", "1e", "0x10", "1,5", "٣", "1" * 20, "nan", "1m5"]
)
def test_what_is_not_a_quantity_is_refused_by_name(text):
    with pytest.raises(BadQuantity) as refused:
        quantity(text)
    assert str(refused.value) == f"{text!r} is not a resource quantity"


def test_a_quantity_over_kubernetes_own_bound_is_refused():
    with pytest.raises(BadQuantity, match="is over the largest quantity, 9223372036854775807"):
        from_resources({"memory": "1e20"}, {})


@pytest.mark.parametrize(
    ("requests", "limits", "demand"),
    [
        ({}, {}, Demand(memory_limit=None)),
        ({"cpu": "500m", "memory": "1Gi"}, {}, Demand(500, GIB, None)),
        ({"cpu": "1"}, {"cpu": "4", "memory": "2Gi"}, Demand(1000, 2 * GIB, 2 * GIB)),
        ({"cpu": "0.1m"}, {}, Demand(1, 0, None)),
        ({"cpu": "-1"}, {}, Demand(0, 0, None)),
        ({}, {"cpu": "1", "memory": "0"}, Demand(1000, 0, None)),
        (
            {"memory": "1Gi"},
            {"memory": "1Gi", "hugepages-2Mi": "64Mi", "hugepages-1Gi": "2Gi"},
            Demand(0, GIB, GIB, {2 << 20: 64 << 20, GIB: 2 * GIB}),
        ),
    ],
)
def test_a_containers_demand_is_its_requests(requests, limits, demand):
    assert from_resources(requests, limits) == demand


@pytest.mark.parametrize(
    ("settings", "milli"),
    [
        ({"shares": 2}, 0),
        ({"shares": 1024}, 1000),
        ({"shares": 512, "quota": 100_000, "period": 100_000}, 500),
        ({"quota": 150_000, "period": 100_000}, 1500),
        ({"shares": 2, "quota": 150_000, "period": 100_000}, 0),
        ({"quota": -1, "period": 100_000}, 0),
        ({"shares": 262_144}, 256_000),
        ({"shares": 262_144, "quota": 30_000_000, "period": 100_000}, 300_000),
        ({"shares": 262_144, "quota": 10_000_000, "period": 100_000}, 256_000),
        ({"shares": 262_144, "quota": -1, "period": 100_000}, 256_000),
        ({}, 0),
    ],
)
def test_cpu_is_estimated_from_what_the_runtime_is_told(settings, milli):
    received = {"shares": None, "quota": None, "period": None, "memory_limit": None, **settings}
    assert from_cgroup(**received).cpu_milli == milli


@given(st.integers(2, 512_000))
def test_a_cpu_request_comes_back_from_its_shares(milli):
    shares = max(2, milli * 1024 // 1000)
    assert abs(from_cgroup(shares=shares, quota=None, period=None, memory_limit=None).cpu_milli - milli) <= (
        2 if shares == 2 else 0
    )


def test_an_estimate_says_that_it_is_one():
    received = from_cgroup(shares=1024, quota=None, period=None, memory_limit=GIB)
    assert received.estimated == {"cpu", "memory"}
    assert (received.memory, received.memory_limit) == (GIB, GIB)
    assert from_cgroup(shares=2, quota=None, period=None, memory_limit=-1).memory_limit is None


def test_hugepages_are_not_estimated():
    received = from_cgroup(shares=2, quota=None, period=None, memory_limit=None, hugepages={2 << 20: GIB})
    assert received.hugepages == {2 << 20: GIB}
    assert received.estimated == {"cpu", "memory"}


def test_what_several_ask_for_together_is_at_most_the_largest_quantity():
    largest = 2**63 - 1
    each = Demand(largest, largest, largest, {GIB: largest}, used_milli=largest)
    for together in (each + each, each.times(3), of_pod([each] * 3)):
        assert together == each
    assert Demand(1, largest, None).times(2) == Demand(2, largest, None)


def milli(amount):
    return Demand(cpu_milli=amount)


@pytest.mark.parametrize(
    ("containers", "init", "total"),
    [
        ([100, 200], [], 300),
        ([100], [(500, False)], 500),
        ([100], [(500, False), (300, False)], 500),
        ([100], [(50, True)], 150),
        ([100], [(50, True), (400, False)], 450),
        ([100], [(400, False), (50, True)], 400),
        ([600], [(50, True), (400, False), (30, True)], 680),
        ([], [], 0),
    ],
)
def test_a_pods_demand_counts_sidecars_and_the_largest_moment_of_its_start(containers, init, total):
    pod = of_pod(
        [milli(container) for container in containers], [(milli(entry), restartable) for entry, restartable in init]
    )
    assert pod.cpu_milli == total


AMOUNTS = st.integers(0, 64_000)


@given(st.lists(AMOUNTS, max_size=4), st.lists(st.tuples(AMOUNTS, st.booleans()), max_size=6))
def test_a_pods_demand_is_the_most_that_runs_at_one_time(containers, init):
    """Each init container runs beside the sidecars that were started before it, and the containers beside all of them."""
    before = [sum(amount for amount, stays in init[:index] if stays) for index in range(len(init) + 1)]
    starting = [beside + amount for beside, (amount, _) in zip(before, init, strict=False)]
    pod = of_pod(map(milli, containers), [(milli(amount), stays) for amount, stays in init])
    assert pod.cpu_milli == max(*starting, before[-1] + sum(containers), 0)


def test_a_pods_overhead_comes_on_top():
    assert of_pod([milli(100)], [(milli(500), False)], overhead=milli(50)).cpu_milli == 550


def test_one_container_without_a_limit_makes_a_pod_without_one():
    assert of_pod([Demand(memory_limit=GIB), Demand(memory_limit=None)]).memory_limit is None
    assert of_pod([Demand(memory_limit=GIB), Demand(memory_limit=GIB)]).memory_limit == 2 * GIB


@pytest.mark.parametrize(("cpu", "whole"), [(0, 1), (1, 1), (1000, 1), (1001, 2), (2500, 3)])
def test_exclusive_cpus_are_whole_ones(cpu, whole):
    assert milli(cpu).whole_cpus == whole


@given(
    st.builds(
        Demand,
        st.integers(0, 9000),
        st.integers(0, 1 << 40),
        st.none() | st.integers(0, 1 << 40),
        st.dictionaries(st.sampled_from([2 << 20, 1 << 30]), st.integers(1, 1 << 32)),
        st.sampled_from([frozenset(), frozenset({"cpu"})]),
        st.integers(0, 9000),
    ),
    st.integers(2, 6),
)
def test_so_many_alike_ask_for_what_they_ask_for_one_by_one(demand, count):
    summed = demand
    for _ in range(count - 1):
        summed = summed + demand
    assert demand.times(count) == summed


LIMITS = {"cpu": "2", "memory": "4Gi"}


@pytest.mark.parametrize(
    ("containers", "requests", "limits", "expected"),
    [
        (Demand(100, GIB), {"cpu": "1", "memory": "2Gi"}, {}, (1000, 2 * GIB)),
        (Demand(100, GIB), {}, LIMITS, (100, GIB)),
        (Demand(), {}, LIMITS, (2000, 4 * GIB)),
    ],
    ids=["named", "a limit above what containers ask for", "a limit where none asks for anything"],
)
def test_what_a_pod_s_own_resources_name_goes_before_its_containers_sum(containers, requests, limits, expected):
    own = own_resources(containers, requests, limits)
    assert (own.cpu_milli, own.memory) == expected
