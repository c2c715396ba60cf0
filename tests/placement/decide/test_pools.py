"""Which CPUs of its NUMA nodes a container gets: exclusive, shared, reclaimed or reserved."""

from __future__ import annotations

from placement.decide.decide import Kin, decide
from placement.optin.parsing import Cpus, Pool
from placement.state.occupancy import Occupancy
from tests import machines
from tests.placement.asking import asks, at, cpus, demand, filled, nodes, settle
from tests.placement.decide.shapes import SMALL


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
        assert not decide(machines.NO_NUMA, before, asks("own", 4, cpus=Cpus.EXCLUSIVE), Kin()).fits
        assert decide(machines.NO_NUMA, before, asks("own", 3, cpus=Cpus.EXCLUSIVE), Kin()).fits

    def test_the_machine_keeps_a_cpu(self):
        assert not decide(machines.NO_NUMA, Occupancy(), asks("own", 4, cpus=Cpus.EXCLUSIVE), Kin()).fits

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
