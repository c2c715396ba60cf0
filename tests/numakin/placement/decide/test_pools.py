"""Which CPUs of its NUMA nodes a container gets: exclusive, shared, reclaimed or reserved."""

from __future__ import annotations

import pytest

from numakin.placement.decide.decide import Kin, decide
from numakin.placement.optin.parsing import Cpus, Policy, Pool
from numakin.placement.state import pools
from numakin.placement.state.occupancy import Occupancy
from tests import machines
from tests.numakin.placement.asking import asks, at, cpus, demand, filled, nodes, settle
from tests.numakin.placement.decide.shapes import SMALL, XEON


class TestPools:
    def test_exclusive_cpus_shrink_the_shared_pool_in_the_same_answer(self):
        before = filled(SMALL, asks("a"), asks("b", 0))
        decision = decide(SMALL, before, asks("own", 2, cpus=Cpus.EXCLUSIVE), at("0"))
        assert decision.cpus == decision.exclusive == cpus("0-1")
        assert dict(decision.updates) == {"a-main": cpus("2-3"), "b-main": cpus("2-3")}
        assert "exclusive CPUs 2: CPUs 0-1 are shared with nobody, 2 containers leave them" in decision.sentence

    def test_the_shared_pool_keeps_what_its_members_requested(self):
        before = filled(SMALL, asks("a", 2.5))
        decision = decide(SMALL, before, asks("own", 2, cpus=Cpus.EXCLUSIVE), Kin())
        assert decision.numa_nodes == nodes("1")

    def test_nobody_is_left_without_a_cpu(self):
        before = filled(machines.NO_NUMA, asks("a", 0, 0))
        assert not decide(machines.NO_NUMA, before, asks("own", 4, cpus=Cpus.EXCLUSIVE), Kin()).exclusive
        assert decide(machines.NO_NUMA, before, asks("own", 3, cpus=Cpus.EXCLUSIVE), Kin()).exclusive

    def test_the_machine_keeps_a_cpu(self):
        assert not decide(machines.NO_NUMA, Occupancy(), asks("own", 4, cpus=Cpus.EXCLUSIVE), Kin()).exclusive

    def test_who_can_have_no_cpus_of_its_own_shares_near_its_kin(self):
        reserved = Occupancy(reserved=cpus("4-7"))
        before = filled(SMALL, asks("x", 2, cpus=Cpus.EXCLUSIVE), asks("y", 0.4), occupancy=reserved)
        decision = decide(SMALL, before, asks("own", 1.5, cpus=Cpus.EXCLUSIVE), Kin())
        assert (decision.numa_nodes, decision.exclusive, decision.fits) == (nodes("0"), cpus(""), True)
        assert decision.cpus == cpus("2-3")

    def test_what_shares_instead_scores_less_than_any_node_with_cpus_of_its_own(self):
        full = filled(SMALL, asks("x", 4, cpus=Cpus.EXCLUSIVE), asks("y", 3, group="shop/y", cpus=Cpus.EXCLUSIVE))
        instead = decide(SMALL, full, asks("own", 1, cpus=Cpus.EXCLUSIVE), Kin())
        assert instead.shares_instead
        assert 0 < instead.score < decide(SMALL, Occupancy(), asks("own", 1, cpus=Cpus.EXCLUSIVE), Kin()).score

    @pytest.mark.parametrize(("policy", "admitted"), [("best-effort", True), ("restricted", False)])
    def test_a_strict_policy_does_not_admit_what_shares_instead(self, policy, admitted):
        full = filled(SMALL, asks("x", 4, cpus=Cpus.EXCLUSIVE), asks("y", 3, group="shop/y", cpus=Cpus.EXCLUSIVE))
        asked = asks("own", 1, cpus=Cpus.EXCLUSIVE, policy=Policy(policy))
        assert decide(SMALL, full, asked, Kin()).admitted == admitted

    @pytest.mark.parametrize(
        ("there", "asked", "why"),
        [
            ([("a", 0)], 4, "exclusive CPUs 4: 3 can be spared of 4 free ones, the last shared one of a pool is kept"),
            ([("a", 2)], 3, "exclusive CPUs 3: 2 can be spared of 4 free ones: it shares instead"),
        ],
        ids=["all are free", "others asked for them"],
    )
    def test_that_free_cpus_are_not_given_is_explained(self, there, asked, why):
        before = filled(machines.NO_NUMA, *(asks(name, cpu, 0) for name, cpu in there))
        assert why in decide(machines.NO_NUMA, before, asks("own", asked, 0, cpus=Cpus.EXCLUSIVE), Kin()).sentence

    def test_who_fits_nowhere_has_all_cpus_that_are_nobodys_own(self):
        before = filled(SMALL, asks("own", 2, cpus=Cpus.EXCLUSIVE))
        decision, after = settle(SMALL, before, asks("a", 0, 1000))
        assert (decision.cpus, decision.fits) == (cpus("2-7"), False)
        assert decide(SMALL, Occupancy(), asks("a", 0, 1000), Kin()).cpus == cpus("")
        more, after = settle(SMALL, after, asks("more", 2, 0, cpus=Cpus.EXCLUSIVE, group="shop/x"))
        assert dict(more.updates) == {"a-main": cpus("2-7") - more.exclusive}
        ended = after.without_pod("own").without_pod("more")
        assert dict(pools.due(SMALL, ended)) == {"a-main": SMALL.cpus}

    def test_policy_none_keeps_off_exclusive_cpus_too(self):
        before = filled(SMALL, asks("own", 2, cpus=Cpus.EXCLUSIVE))
        assert decide(SMALL, before, asks("a", policy=Policy.NONE), Kin()).cpus == cpus("2-7")

    def test_who_fits_nowhere_holds_no_last_cpu_of_any_pool(self):
        _, before = settle(SMALL, Occupancy(), asks("wide", 0, 1000))
        assert not decide(SMALL, Occupancy(), asks("wide", 0, 1000), Kin()).fits
        assert len(decide(SMALL, before, asks("own", 4, 0, cpus=Cpus.EXCLUSIVE), Kin()).exclusive) == 4

    def test_a_small_container_takes_no_whole_cpu_by_its_pods_annotation(self):
        pod = demand(3.05)
        before = filled(SMALL, asks("a", 3, name="main", pod_demand=pod, cpus=Cpus.EXCLUSIVE))
        proxy = asks("a", 0.05, name="proxy", pod_demand=pod, cpus=Cpus.EXCLUSIVE)
        decision = decide(SMALL, before, proxy, Kin())
        assert (decision.cpus, decision.exclusive) == (cpus("3"), cpus(""))
        assert "shares: cpus.numakin.io/container.proxy would give it one" in decision.sentence

    def test_a_small_container_that_is_named_has_a_whole_cpu(self):
        named = asks("a", 0.05, cpus=Cpus.EXCLUSIVE, cpus_named=True)
        assert len(decide(SMALL, Occupancy(), named, Kin()).exclusive) == 1

    def test_a_pods_running_container_follows_when_another_widens_it(self):
        whole = demand(5)
        before = filled(SMALL, asks("a", 2, name="one", pod_demand=demand(2)), asks("b", 2))
        assert before.reservations["a"].numa_nodes == before.reservations["b"].numa_nodes
        decision = decide(SMALL, before, asks("a", 3, name="two", pod_demand=whole), Kin())
        assert len(decision.numa_nodes) == 2
        assert dict(decision.updates) == {"a-one": SMALL.cpus}

    def test_a_shared_container_keeps_off_exclusive_cpus(self):
        before = filled(SMALL, asks("own", 2, cpus=Cpus.EXCLUSIVE))
        decision = decide(SMALL, before, asks("a"), Kin())
        assert (decision.numa_nodes, decision.cpus) == (nodes("0"), cpus("2-3"))

    def test_init_containers_give_their_exclusive_cpus_back(self):
        pod = demand(2)
        init = asks("a", 2, name="init", pod_demand=pod, cpus=Cpus.EXCLUSIVE)
        main = asks("a", 2, name="main", pod_demand=pod, cpus=Cpus.EXCLUSIVE)
        running = filled(SMALL, init)
        assert decide(SMALL, running.without_allocation("a-init"), main, Kin()).exclusive == running.exclusive

    def test_a_sidecar_and_its_pod_have_exclusive_cpus_each(self):
        pod = demand(3)
        before = filled(SMALL, asks("a", 1, name="sidecar", pod_demand=pod, cpus=Cpus.EXCLUSIVE))
        decision = decide(SMALL, before, asks("a", 2, name="main", pod_demand=pod, cpus=Cpus.EXCLUSIVE), Kin())
        assert (decision.numa_nodes, len(decision.exclusive)) == (nodes("0"), 2)
        assert decision.exclusive.isdisjoint(before.exclusive)

    def test_reclaimed_pods_get_what_is_left_and_hold_no_room(self):
        before = filled(SMALL, asks("a", 3), asks("x", 3, group="shop/x"))
        decision, after = settle(SMALL, before, asks("low", 4, pool=Pool.RECLAIMED))
        assert decision.cpus == cpus("3")
        assert after.cpu_load(SMALL) == before.cpu_load(SMALL)

    def test_reclaimed_pods_shrink_first(self):
        before = filled(SMALL, asks("low", 1, pool=Pool.RECLAIMED))
        assert before.allocations["low-main"].cpus == cpus("0-3")
        decision = decide(SMALL, before, asks("a", 2), Kin())
        assert decision.cpus == cpus("0-3")
        assert dict(decision.updates) == {"low-main": cpus("2-3")}

    def test_system_pods_run_on_the_reserved_cpus(self):
        occupancy = Occupancy(reserved=cpus("0-1"))
        assert decide(SMALL, occupancy, asks("sys", 1, pool=Pool.RESERVED), Kin()).cpus == cpus("0-1")
        assert decide(SMALL, Occupancy(), asks("sys", 1, pool=Pool.RESERVED), Kin()).cpus == cpus("0-3")

    def test_who_wants_to_be_alone_is(self):
        before = filled(SMALL, asks("a"))
        alone = asks("hermit", 1, alone=True)
        decision, after = settle(SMALL, before, alone)
        assert decision.numa_nodes == nodes("1")
        assert decide(SMALL, after, asks("b", 1), at("1")).numa_nodes == nodes("0")
        assert decide(SMALL, after, asks("low", 1, pool=Pool.RECLAIMED), at("1")).numa_nodes == nodes("1")
        assert not decide(SMALL, after, asks("second", 1, alone=True), Kin()).fits


class TestStable:
    """`shared-stable`: for programs that set their own threads' affinity, which a new cpuset takes from them."""

    def test_it_has_the_last_half_of_its_homes_cores_and_others_the_whole_pool(self):
        decision, after = settle(XEON, Occupancy(), asks("a", 1, cpus=Cpus.SHARED_STABLE), at("0"))
        assert decision.cpus == cpus("8-15,40-47")
        assert decide(XEON, after, asks("b"), at("0")).cpus == cpus("0-15,32-47")
        assert "stable CPUs 8-15,40-47: stay its cpuset: none of them becomes exclusive" in decision.sentence

    def test_exclusive_cpus_that_come_and_go_change_the_shared_pool_alone(self):
        before = filled(SMALL, asks("a", 1, cpus=Cpus.SHARED_STABLE), asks("b"))
        decision, after = settle(SMALL, before, asks("own", 1, cpus=Cpus.EXCLUSIVE), at("0"))
        assert (decision.exclusive, dict(decision.updates)) == (cpus("0"), {"b-main": cpus("1-3")})
        assert after.allocations["a-main"].cpus == cpus("2-3")
        assert dict(pools.due(SMALL, after.without_pod("own"))) == {"b-main": cpus("0-3")}

    def test_none_of_its_cpus_becomes_exclusive(self):
        before = filled(SMALL, asks("a", 1, cpus=Cpus.SHARED_STABLE))
        three = asks("own", 3, cpus=Cpus.EXCLUSIVE)
        assert decide(SMALL, before, three, at("0")).exclusive == cpus("4-6")
        assert decide(SMALL, before.without_pod("a"), three, at("0")).exclusive == cpus("0-2")
        two = decide(SMALL, before, asks("own", 2, cpus=Cpus.EXCLUSIVE), at("0"))
        assert two.exclusive == cpus("0-1"), "the pool that the others run in keeps the stable part"

    def test_where_the_stable_part_does_not_hold_the_requests_it_has_the_pool_of_now(self):
        before = filled(SMALL, asks("own", 1, cpus=Cpus.EXCLUSIVE), asks("a", 1.5, cpus=Cpus.SHARED_STABLE))
        assert before.allocations["a-main"].cpus == cpus("2-3")
        decision = decide(SMALL, before, asks("b", 1, cpus=Cpus.SHARED_STABLE), at("0"))
        assert decision.cpus == cpus("1-3")

    def test_asking_again_changes_nothing(self):
        first = asks("a", 1, cpus=Cpus.SHARED_STABLE)
        before = filled(SMALL, first, asks("own", 1, cpus=Cpus.EXCLUSIVE))
        assert decide(SMALL, before, first, Kin()).cpus == before.allocations["a-main"].cpus


class TestRoundedUp:
    """kube-scheduler counts requests, decide() whole CPUs or cores."""

    @pytest.mark.parametrize(
        ("count", "cpu", "kind"),
        [(84, 1.5, Cpus.EXCLUSIVE), (42, 3, Cpus.EXCLUSIVE_CORES), (126, 1, Cpus.EXCLUSIVE_CORES)],
        ids=["1500m", "three in whole cores", "one in whole cores"],
    )
    def test_all_that_kube_scheduler_admits_have_what_they_asked_for(self, count, cpu, kind):
        """128 CPUs on two NUMA nodes, cores of two."""
        machine = machines.machine(
            "128 CPUs",
            ["0-31,64-95", "32-63,96-127"],
            [512, 512],
            threads=[f"{core},{core + 64}" for core in range(64)],
        )
        occupancy = filled(machine, *(asks(f"p{at}", cpu, 1, cpus=kind) for at in range(count)))
        allocations = occupancy.allocations.values()
        assert not [allocation for allocation in allocations if allocation.open]
        load = occupancy.load(machine).rows
        assert all(load[numa_node].cpu <= 64_000 for numa_node in (0, 1))
        assert all(a.exclusive.isdisjoint(b.cpus) for a in allocations for b in allocations if a is not b)

    def test_cpus_of_whole_requests_are_never_lent(self):
        before = filled(SMALL, asks("x", 4, cpus=Cpus.EXCLUSIVE), asks("y", 3, group="shop/y", cpus=Cpus.EXCLUSIVE))
        decision = decide(SMALL, before, asks("own", 1.5, cpus=Cpus.EXCLUSIVE), Kin())
        assert (decision.share_again, decision.fits) == ((), False)

    def test_who_gives_up_being_alone_is_named(self):
        before = filled(machines.NO_NUMA, asks("x", 1.5, cpus=Cpus.EXCLUSIVE), asks("y", 1))
        decision, after = settle(machines.NO_NUMA, before, asks("z", 1.5))
        assert (decision.share_again, decision.fits) == (("x-main",), True)
        assert {allocation.cpus for allocation in after.allocations.values()} == {cpus("0-3")}
        assert "of 1 containers were rounded up: they share from now on" in decision.sentence
