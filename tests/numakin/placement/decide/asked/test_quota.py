"""No namespace has more exclusive CPUs on a node than it may, and no container fails for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numakin.placement.decide.asked.quota import on_node
from numakin.placement.decide.decide import Kin, decide
from numakin.placement.model.rules import Rules
from numakin.placement.optin.options import Cpus
from numakin.placement.state.occupancy import Occupancy
from tests import examples, machines
from tests.numakin.placement.asking import asks, filled, settle

XEON = machines.XEON
LIMITED = Occupancy(rules=Rules(max_exclusive_cpus_per_namespace=4))


def own(pod, cpu=2, namespace="shop", *, limit=None, kind=Cpus.EXCLUSIVE):
    request = asks(pod, cpu, cpus=kind, group=f"{namespace}/web", workload=f"{namespace}/Deployment/web")
    return replace(request, max_exclusive_cpus=limit)


def reasons(decision):
    return [str(reason) for reason in decision.reasons if reason.what == "quota"]


def test_what_is_within_the_quota_is_granted():
    decision = decide(XEON, filled(XEON, own("a"), occupancy=LIMITED), own("b"), Kin())
    assert len(decision.exclusive) == 2
    assert reasons(decision) == []


def test_what_is_over_it_runs_in_the_shared_pool_and_says_why():
    before = filled(XEON, own("a", 3), occupancy=LIMITED)
    decision, after = settle(XEON, before, own("b"))
    assert not decision.exclusive
    assert decision.fits
    assert decision.cpus.isdisjoint(before.exclusive)
    assert after.exclusive == before.exclusive
    assert reasons(decision) == [
        "quota 4 exclusive CPUs: for namespace shop on a node; it has 3 and asked for 2 more: shared pool instead"
    ]


def test_it_is_placed_just_as_if_it_had_not_asked():
    before = filled(XEON, own("a", 3), occupancy=LIMITED)
    over = decide(XEON, before, own("b"), Kin())
    shared = decide(XEON, before, own("b", kind=Cpus.SHARED), Kin())
    assert replace(over, reasons=()) == replace(shared, reasons=())


def test_another_namespace_s_exclusive_cpus_do_not_count():
    before = filled(XEON, own("a", 4, "victim"), occupancy=LIMITED)
    assert len(decide(XEON, before, own("b", 4), Kin()).exclusive) == 4


def test_a_namespace_s_own_limit_takes_the_place_of_the_node_s():
    before = filled(XEON, own("a", 4), occupancy=LIMITED)
    assert decide(XEON, before, own("b", limit=8), Kin()).exclusive
    assert not decide(XEON, Occupancy(), own("b", limit=1), Kin()).exclusive


def test_pods_of_a_group_to_be_found_count_by_their_workload():
    result = replace(own("a", 4), opt_in=replace(own("a").opt_in, group=""))
    before = filled(XEON, result, occupancy=LIMITED)
    assert not decide(XEON, before, own("b"), Kin()).exclusive


def test_whole_cores_count_with_their_siblings():
    one_core = own("a", 1, kind=Cpus.EXCLUSIVE_CORES)
    assert decide(XEON, Occupancy(), replace(one_core, max_exclusive_cpus=2), Kin()).exclusive
    assert not decide(XEON, Occupancy(), replace(one_core, max_exclusive_cpus=1), Kin()).exclusive


def test_a_limit_that_is_lowered_takes_nothing_from_who_has_it():
    before = filled(XEON, own("a", 4))
    assert decide(XEON, before, own("a", 4, limit=0), Kin()).exclusive == before.exclusive


def test_a_pod_that_wants_its_numa_nodes_alone_does_not_get_them_under_a_limit():
    alone = asks("a", group="shop/web", alone=True)
    assert on_node(Occupancy(), alone) == alone
    on_limited = on_node(LIMITED, alone)
    assert not on_limited.opt_in.alone
    assert reasons(decide(XEON, LIMITED, on_limited, Kin()))


def test_what_was_left_out_before_is_among_the_reasons():
    request = replace(asks("a"), refused=("size.numakin.io 11 is over 10, its namespace's largest",))
    assert reasons(decide(XEON, Occupancy(), request, Kin())) == [
        "quota: size.numakin.io 11 is over 10, its namespace's largest"
    ]


ASKED = st.tuples(st.sampled_from(["shop", "victim", "other"]), st.integers(0, 9), st.sampled_from(Cpus), st.booleans())


@settings(max_examples=examples.of(100), deadline=None)
@given(st.lists(ASKED, max_size=12), st.integers(0, 10))
@pytest.mark.parametrize("machine", [XEON, machines.EPYC_NPS4], ids=lambda machine: machine.name)
def test_no_namespace_ever_has_more_than_it_may(machine, asked, limit):
    occupancy = Occupancy(rules=Rules(max_exclusive_cpus_per_namespace=limit))
    held = {}
    for number, (namespace, cpu, kind, ends) in enumerate(asked):
        decision, occupancy = settle(machine, occupancy, own(f"p{number}", cpu, namespace, kind=kind))
        assert decision.fits or not decision.cpus
        held[f"p{number}"] = namespace, len(decision.exclusive)
        if ends:
            occupancy = occupancy.without_pod(f"p{number}")
            del held[f"p{number}"]
        for name in ("shop", "victim", "other"):
            assert sum(count for namespace, count in held.values() if namespace == name) <= limit
