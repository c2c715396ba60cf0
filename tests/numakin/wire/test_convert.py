"""What placement's values become on the report stream reads back as the same values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.standins.machines import MACHINES
from numakin.placement.decide.decide import Kin, Reason
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.names import NAMESPACE_LENGTH
from numakin.placement.model.rules import Rules
from numakin.placement.namespaces import Namespaces, NamespaceTerms
from numakin.placement.optin.options import Pool
from numakin.placement.optin.quotas import KEYS, Quota
from numakin.placement.state.occupancy import Allocation, Part, Reservation
from numakin.placement.traffic.tenancy import MOST_NAMES
from numakin.wire import bounds, convert
from numakin.wire import report_pb2 as pb
from tests import machines

cpus = st.builds(CpuSet.of, st.sets(st.integers(0, 300), max_size=8))
numa_nodes = st.builds(NumaSet.of, st.sets(st.integers(0, 40), max_size=4))
amounts = st.integers(0, 2**63 - 1)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
demands = st.builds(
    Demand,
    cpu_milli=amounts,
    memory=amounts,
    memory_limit=st.none() | amounts,
    hugepages=st.dictionaries(amounts, amounts, max_size=2),
    estimated=st.frozensets(st.sampled_from(["cpu", "memory"])),
)
pages = st.dictionaries(amounts, amounts, max_size=2).map(lambda by_size: tuple(sorted(by_size.items())))
reservations = st.builds(
    Reservation,
    key=names,
    pod=names,
    group=names,
    numa_nodes=numa_nodes,
    demand=demands,
    parts=st.lists(st.builds(Part, st.integers(0, 40), amounts, amounts, pages), max_size=3).map(tuple),
    pool=st.sampled_from(Pool),
    alone=st.booleans(),
    size=st.integers(0, 10_000),
    workload=names,
    cache_domain=cpus,
)
allocations = st.builds(
    Allocation,
    container=names,
    name=names,
    pod=names,
    reservation=names,
    cpus=cpus,
    mems=numa_nodes,
    exclusive=cpus,
    externally_managed=st.booleans(),
    open=st.booleans(),
    stable=st.booleans(),
    rounded_up=amounts,
)
rules = st.builds(
    Rules,
    st.booleans(),
    st.integers(0, 1024),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(0, 10_000),
)


@given(reservations)
def test_a_reservation_comes_back(reservation):
    assert convert.reservation_from(_sent(convert.reservation_to(reservation))) == reservation


@given(demands)
def test_equal_demands_are_one_value(demand):
    """A node's pods are replicas for the most part, and a cluster has thousands of nodes."""
    first, second = (convert.demand_from(convert.demand_to(demand)) for _ in range(2))
    assert first is second


@given(allocations)
def test_a_allocation_comes_back(allocation):
    assert convert.allocation_from(_sent(convert.allocation_to(allocation))) == allocation


@pytest.mark.parametrize("machine", machines.ALL, ids=lambda entry: entry.name)
def test_a_machine_comes_back(machine):
    assert convert.machine_from(_sent(convert.machine_to(machine))) == machine


@pytest.mark.parametrize("name", ["kunpeng-920-2s", "epyc-9965-nps1"])
def test_so_do_its_clusters_and_cache_domains(name):
    machine = MACHINES[name].machine
    sent = convert.machine_from(_sent(convert.machine_to(machine)))
    assert (sent, sent.cache_domains) == (machine, machine.cache_domains)


@given(rules)
def test_the_operators_rules_come_back(received):
    assert convert.rules_from(_sent(convert.machine_to(machines.SMALL, CpuSet(), received))) == received


def test_rules_that_are_not_told_are_the_defaults():
    assert convert.rules_from(pb.Machine()) == Rules()


def test_a_pool_that_is_not_known_here_is_the_shared_one():
    assert convert.reservation_from(pb.Reservation(key="a", pool="platinum")).pool is Pool.SHARED


def test_kin_are_what_the_nomination_tells():
    expect = pb.Expect(
        numa_nodes="1",
        planned="0-1",
        kin=[pb.KinWeight(pod="a", weight=2.5)],
        kin_elsewhere=1.5,
        room_milli=3000,
    )
    assert convert.kin_from(expect) == Kin({"a": 2.5}, 1.5, NumaSet.of([1]), NumaSet.of([0, 1]), 3000)


def test_a_reason_keeps_its_three_parts():
    sent = convert.reason_to(Reason("kin", "0.50", "near"))
    assert (sent.what, sent.number, sent.effect) == ("kin", "0.50", "near")


def _sent(message):
    """Through the wire and back."""
    return type(message).FromString(message.SerializeToString())


settings_of_namespaces = st.builds(
    NamespaceTerms,
    st.frozensets(names, max_size=3),
    st.builds(
        Quota,
        st.none() | st.integers(0, 1_000_000),
        st.none() | st.integers(0, 10_000),
        st.none() | st.frozensets(st.sampled_from(KEYS)),
    ),
)


@given(st.dictionaries(names, settings_of_namespaces, max_size=3))
def test_namespaces_read_back(settings):
    message = pb.Namespaces.FromString(convert.namespaces_to(Namespaces(settings)).SerializeToString())
    assert convert.namespaces_from(message) == Namespaces(settings)


def test_the_most_namespaces_with_the_most_names_fit_into_one_message():
    longest = {f"n{number:0{NAMESPACE_LENGTH - 1}d}": NamespaceTerms() for number in range(bounds.NAMESPACES)}
    names = frozenset([*longest][:MOST_NAMES])
    full = NamespaceTerms(names, Quota(1_000_000, 10_000, frozenset(KEYS)))
    assert convert.namespaces_to(Namespaces(dict.fromkeys(longest, full))).ByteSize() < bounds.MESSAGE_BYTES


def test_what_this_version_does_not_know_of_a_demand_is_not_kept() -> None:
    known = pb.Demand(cpu_milli=1234, memory=5678)
    newer = pb.Demand.FromString(known.SerializeToString() + bytes.fromhex("a20603") + b"new")
    assert convert.demand_from(newer) is convert.demand_from(known)
    assert newer == known
