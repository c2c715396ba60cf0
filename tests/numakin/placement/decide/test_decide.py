"""Where a container goes, and why: the nominations of decide(), one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from numakin.placement.decide.decide import Kin, decide
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.live_usage import Live
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.optin.parsing import Cpus, Policy, Scope
from numakin.placement.state.occupancy import Occupancy, Reservation
from tests import machines
from tests.numakin.placement.asking import asks, at, cpus, demand, filled, nodes, settle
from tests.numakin.placement.decide.shapes import KUNPENG, SMALL, XEON


def whats(decision):
    return [reason.what for reason in decision.reasons]


class TestKin:
    def test_a_member_joins_its_group(self):
        before = filled(KUNPENG, asks("other", group="shop/db"), asks("first"))
        home = before.reservations["first"].numa_nodes
        decision = decide(KUNPENG, before, asks("second"), Kin())
        assert decision.numa_nodes == home
        assert str(decision.reasons[0]) == f"its kin are near 100%: NUMA node {home}"

    def test_without_kin_the_emptiest_numa_node_is_taken(self):
        before = filled(KUNPENG, asks("a", group="shop/a"), asks("b", 2, group="shop/b"), asks("c", group="shop/c"))
        assert [str(before.reservations[pod].numa_nodes) for pod in "abc"] == ["0", "1", "2"]
        decision = decide(KUNPENG, before, asks("d", group="shop/d"), Kin())
        assert decision.numa_nodes == nodes("3")
        assert str(decision.reasons[0]) == "no kin here: the emptiest that fits is NUMA node 3"

    def test_pods_without_requests_spread_by_number(self):
        before = filled(SMALL, asks("a", 0, 0, group="shop/a"))
        assert decide(SMALL, before, asks("b", 0, 0, group="shop/b"), Kin()).numa_nodes == nodes("1")

    def test_the_heaviest_peer_draws_most(self):
        before = filled(SMALL, asks("a", group="shop/a"), asks("b", group="shop/b"))
        assert before.reservations["b"].numa_nodes == nodes("1")
        decision = decide(SMALL, before, asks("c"), Kin({"a": 1.0, "b": 3.0}))
        assert decision.numa_nodes == nodes("1")

    def test_peers_near_by_count_by_distance(self):
        reservations = [
            Reservation("near", "near", "x/x", nodes("1"), Demand(32_000)),
            Reservation("far", "far", "x/x", nodes("2"), Demand()),
        ]
        before = Occupancy({reservation.key: reservation for reservation in reservations})
        decision = decide(KUNPENG, before, asks("c"), Kin({"near": 10.0}))
        assert decision.numa_nodes == nodes("0"), "NUMA node 1 is full, 0 is its nearest"
        assert "nearer to its kin NUMA node 1, 100%: short of CPU" in decision.sentence

    def test_peers_elsewhere_lower_the_score_and_not_the_place(self):
        before = filled(SMALL, asks("a"))
        here = decide(SMALL, before, asks("b"), Kin({"a": 1.0}))
        torn = decide(SMALL, before, asks("b"), Kin({"a": 1.0}, elsewhere=3.0))
        assert here.numa_nodes == torn.numa_nodes
        assert torn.score < here.score

    def test_a_peer_on_two_numa_nodes_draws_half_to_each(self):
        wide = Occupancy({"w": Reservation("w", "w", "x/x", nodes("0-1"), Demand(1000))})
        score = decide(SMALL, wide, asks("a"), Kin({"w": 1.0}))
        assert str(score.reasons[0]) == "its kin are near 75%: NUMA node 0"

    def test_containers_that_have_not_opted_in_are_nobodys_kin(self):
        externally_managed = Occupancy({"c1": Reservation("c1", "p", "", nodes("1"), Demand())})
        decision = decide(SMALL, externally_managed, asks("a"), Kin({"p": 5.0}))
        assert decision.reasons[0].what == "no kin here"

    def test_an_auto_group_without_history_has_no_kin(self):
        before = filled(SMALL, asks("a", group=""))
        assert decide(SMALL, before, asks("b", group=""), Kin()).numa_nodes == nodes("1")

    def test_in_container_scope_a_pods_containers_are_kin(self):
        web = asks("a", scope=Scope.CONTAINER, name="web")
        side = asks("a", scope=Scope.CONTAINER, name="side")
        before = filled(SMALL, asks("x", 2, group="shop/x"), web)
        assert before.reservations["a/web"].numa_nodes == nodes("1")
        assert decide(SMALL, before, side, Kin({"x": 1.0})).numa_nodes == nodes("1")


class TestRoom:
    def test_requests_are_never_oversubscribed_while_there_is_room(self):
        before = filled(SMALL, asks("a", 3), asks("b", 2))
        assert [str(before.reservations[pod].numa_nodes) for pod in "ab"] == ["0", "1"]

    def test_a_group_keeps_room_for_its_expected_size(self):
        before = filled(SMALL, asks("x", 1, group="shop/x"), asks("y", 2, group="shop/y"), asks("z", 1, group="shop/x"))
        assert [before.reservations[pod].numa_nodes.mask for pod in "xyz"] == [1, 2, 1]
        before = before.without_pod("z")
        assert decide(SMALL, before, asks("a", 1, size=3), Kin()).numa_nodes == nodes("0")

    def test_strangers_leave_room_for_a_group_that_told_its_size(self):
        before = filled(XEON, asks("a", 8, size=4), asks("x", 12, group="shop/x"))
        assert before.reservations["a"].numa_nodes == nodes("0")
        stranger = asks("stranger", 4, group="shop/y")
        assert decide(XEON, before, stranger, Kin()).numa_nodes == nodes("1"), "0 is emptier, and nominated"
        complete = filled(XEON, *(asks(pod, 4, size=4) for pod in "abcd"), asks("x", 20, group="shop/x"))
        assert decide(XEON, complete, stranger, Kin()).numa_nodes == nodes("0")

    def test_what_the_extender_knows_of_the_rest_goes_before_the_size(self):
        full = filled(XEON, asks("x", 30, group="shop/x"))
        assert decide(XEON, full, asks("a", 1), Kin(room_milli=20_000)).numa_nodes == nodes("1")

    def test_a_demand_over_one_numa_node_gets_the_narrowest_and_nearest_set(self):
        decision = decide(KUNPENG, Occupancy(), asks("big", 40), Kin())
        assert decision.numa_nodes in (nodes("0-1"), nodes("2-3"))
        assert decision.cpus == KUNPENG.cpus_of(decision.numa_nodes)
        assert "wide 2 NUMA nodes: none of fewer has the room" in decision.sentence

    def test_a_wide_reservation_takes_from_each_numa_node_what_is_free_there(self):
        before = filled(SMALL, asks("a", 3, group="shop/a"))
        decision, after = settle(SMALL, before, asks("big", 5))
        assert decision.numa_nodes == nodes("0-1")
        assert after.cpu_load(SMALL) == {0: 4000, 1: 4000}

    def test_what_fits_nowhere_is_left_open(self):
        decision = decide(SMALL, Occupancy(), asks("big", 9), Kin())
        assert (decision.fits, decision.score, decision.cpus, decision.mems) == (False, 0.0, cpus(""), nodes(""))
        assert decision.sentence == "fits nowhere 9 CPUs and 1024 MiB: left open over all 2 NUMA nodes"

    def test_without_requests_it_fits_even_where_all_is_requested(self):
        before = filled(SMALL, asks("a", 4), asks("b", 4))
        assert decide(SMALL, before, asks("c", 0, 0), Kin()).fits

    def test_reserved_cpus_are_used_by_nobody_and_count_for_nobody(self):
        occupancy = Occupancy(reserved=cpus("0-1"))
        decision = decide(SMALL, occupancy, asks("a", 3), Kin())
        assert decision.numa_nodes == nodes("1")
        decision = decide(SMALL, occupancy, asks("a", 1), at("0"))
        assert decision.cpus == cpus("2-3")

    def test_a_numa_node_that_is_all_reserved_is_no_home(self):
        occupancy = Occupancy(reserved=cpus("0-3"))
        assert decide(SMALL, occupancy, asks("a"), at("0")).numa_nodes == nodes("1")

    def test_cpus_in_use_break_a_tie(self):
        busy = Occupancy(live=Live(used_cpu={0: 3000}))
        assert decide(SMALL, busy, asks("a"), Kin()).numa_nodes == nodes("1")

    def test_memory_pressure_turns_newcomers_away_where_another_numa_node_fits(self):
        busy = filled(SMALL, asks("a")).with_live(Live(stalled={0: 0.3}))
        assert decide(SMALL, busy, asks("b"), Kin()).numa_nodes == nodes("1")
        full = filled(SMALL, asks("a"), asks("x", 4, group="shop/x")).with_live(Live(stalled={0: 0.3}))
        decision = decide(SMALL, full, asks("b"), Kin())
        assert decision.numa_nodes == nodes("0")
        assert not decision.mems, "never bound to"
        assert "memory pressure: there, and nothing better fits" in decision.sentence

    def test_a_hot_numa_node_takes_no_newcomer_where_another_fits_but_whom_it_was_promised_to(self):
        hot = Live(hot={SMALL.node(0).cpus.mask: True})
        busy = filled(SMALL, asks("a")).with_live(hot)
        for offered in (Kin(), Kin(planned=nodes("0"))):
            decision = decide(SMALL, busy, asks("b"), offered)
            assert decision.numa_nodes == nodes("1")
            assert "hot: nearly all of its CPUs are in use while others idle" in decision.sentence
        assert decide(SMALL, busy, asks("b"), at("0")).numa_nodes == nodes("0")
        full = filled(SMALL, asks("a"), asks("x", 4, group="shop/x")).with_live(hot)
        decision = decide(SMALL, full, asks("b"), Kin())
        assert decision.numa_nodes == nodes("0")
        assert "hot NUMA node 0: its CPUs are in use, and nothing better fits" in decision.sentence
        assert decision.score < decide(SMALL, Occupancy(), asks("b"), Kin()).score, "an idle machine is better"


class TestSettled:
    def test_a_nomination_is_kept_while_it_fits(self):
        before = filled(SMALL, asks("a"))
        decision = decide(SMALL, before, asks("b"), at("1"))
        assert decision.numa_nodes == nodes("1")
        assert str(decision.reasons[0]) == "nominated to the scheduler: NUMA node 1"

    def test_a_nomination_that_no_longer_fits_is_broken_aloud(self):
        before = filled(SMALL, asks("a", 4))
        decision = decide(SMALL, before, asks("b"), at("0"))
        assert decision.numa_nodes == nodes("1")
        assert str(decision.reasons[0]) == "nomination NUMA node 0: does not hold: short of CPU"

    def test_a_nomination_of_another_machine_is_broken_aloud(self):
        decision = decide(SMALL, Occupancy(), asks("b"), at("7"))
        assert str(decision.reasons[0]) == "nomination NUMA node 7: does not hold: short of usable CPUs"
        assert decision.fits

    def test_the_plan_goes_before_kin_and_after_the_nomination(self):
        before = filled(KUNPENG, asks("a"))
        planned = Kin(planned=nodes("3"))
        decision = decide(KUNPENG, before, asks("b"), planned)
        assert decision.numa_nodes == nodes("3")
        assert str(decision.reasons[0]) == "planned: NUMA node 3"
        assert decide(KUNPENG, before, asks("b"), replace(planned, expected=nodes("2"))).numa_nodes == nodes("2")

    def test_a_planned_reservation_that_is_full_draws_to_its_neighbour(self):
        before = filled(KUNPENG, asks("x", 32, group="shop/x"))
        assert before.reservations["x"].numa_nodes == nodes("0")
        assert decide(KUNPENG, before, asks("b"), Kin(planned=nodes("0"))).numa_nodes == nodes("1")

    def test_a_pods_containers_stay_together(self):
        pod = demand(3)
        before = filled(SMALL, asks("a", 1, name="web", pod_demand=pod))
        elsewhere = at("1")
        decision = decide(SMALL, before, asks("a", 2, name="side", pod_demand=pod), elsewhere)
        assert decision.numa_nodes == before.reservations["a"].numa_nodes == nodes("0")
        assert str(decision.reasons[0]) == "its pod is there: NUMA node 0"

    def test_a_running_pod_that_outgrows_its_numa_node_is_widened_and_not_moved(self):
        before = filled(KUNPENG, asks("a", 20), asks("x", 12, group="shop/a"))
        before = before.with_reservation(replace(before.reservations["x"], numa_nodes=nodes("0")))
        grown = asks("a", 10, name="more", pod_demand=demand(30))
        decision = decide(KUNPENG, before, grown, Kin())
        assert decision.numa_nodes == nodes("0-1")
        assert str(decision.reasons[0]) == "its pod is there, but full NUMA node 0: widened to NUMA node 0-1"

    def test_a_restarted_container_finds_its_place_again(self):
        request = asks("a", 2)
        before = filled(SMALL, request).without_allocation("a-main")
        before = filled(SMALL, asks("crowd", 1, group="shop/x"), asks("x", 2, group="shop/y"), occupancy=before)
        again = replace(request, container="a-main-2")
        assert decide(SMALL, before, again, at("1")).numa_nodes == nodes("0")

    def test_a_restarted_container_whose_place_is_gone_is_placed_anew(self):
        request = asks("a", 2)
        before = replace(filled(SMALL, request).without_allocation("a-main"), reserved=cpus("0-3"))
        decision = decide(SMALL, before, request, Kin())
        assert decision.numa_nodes == nodes("1")
        assert str(decision.reasons[0]) == "its former place NUMA node 0: short of CPUs"

    def test_what_was_left_open_is_looked_at_again(self):
        before = filled(SMALL, asks("x", 4, group="x/x"), asks("y", 3, group="x/y"), asks("a", 2))
        assert before.reservations["a"].numa_nodes == nodes("0-1")
        decision = decide(SMALL, before.without_pod("x"), asks("a", 2), Kin())
        assert decision.numa_nodes == nodes("0")

    @pytest.mark.parametrize("kind", list(Cpus))
    @pytest.mark.parametrize("machine", machines.ALL, ids=lambda entry: entry.name)
    def test_asking_again_changes_nothing(self, machine, kind):
        before = filled(machine, asks("x", 1, group="shop/x"), asks("a", 2, 0.5, cpus=kind), asks("y", 1))
        again = decide(machine, before, asks("a", 2, 0.5, cpus=kind), Kin())
        held = before.allocations["a-main"]
        assert (again.cpus, again.exclusive, again.updates) == (held.cpus, held.exclusive, ())
        assert again.numa_nodes == before.reservations["a"].numa_nodes


class TestEstimates:
    def test_an_estimate_says_so(self):
        request = asks("a")
        request = replace(request, demand=replace(request.demand, estimated=frozenset({"cpu", "memory"})))
        decision = decide(SMALL, Occupancy(), request, Kin())
        assert str(decision.reasons[-1]) == "estimated: cpu and memory taken from the cgroup's settings"

    def test_a_later_estimate_never_shrinks_the_pods_reservation(self):
        guess = {"estimated": frozenset({"cpu"})}
        first = replace(demand(3), **guess)
        before = filled(SMALL, asks("a", 3, name="web", pod_demand=first))
        after = filled(SMALL, asks("a", 0.5, name="side", pod_demand=replace(demand(0.5), **guess)), occupancy=before)
        assert after.reservations["a"].demand.cpu_milli == 3000


class TestNoneAndOddMachines:
    def test_policy_none_leaves_everything_open(self):
        decision = decide(SMALL, Occupancy(), asks("a", policy=Policy.NONE), Kin())
        assert (decision.cpus, decision.mems, decision.admitted) == (cpus(""), nodes(""), True)
        assert decision.sentence == "policy none: CPUs and memory are left open"

    def test_a_machine_without_numa_has_one_home(self):
        decision = decide(machines.NO_NUMA, Occupancy(), asks("a"), Kin())
        assert (decision.numa_nodes, decision.cpus, decision.mems) == (nodes("0"), cpus("0-3"), nodes("0"))

    def test_a_cpu_only_numa_node_binds_the_nearest_memory(self):
        decision = decide(machines.CPU_ONLY_NODE, Occupancy(), asks("a"), at("1"))
        assert (decision.numa_nodes, decision.mems) == (nodes("1"), nodes("0"))

    def test_memory_of_a_cpu_only_numa_nodes_pods_counts_where_it_is(self):
        _, after = settle(machines.CPU_ONLY_NODE, Occupancy(), asks("a", 1, 4), at("1"))
        assert after.memory_load(machines.CPU_ONLY_NODE) == {0: 4 * machines.GIB, 1: 0}

    def test_offline_cpus_are_not_used(self):
        decision = decide(machines.OFFLINE, Occupancy(), asks("a"), Kin())
        assert decision.cpus <= machines.OFFLINE.cpus

    def test_the_least_important_reason_comes_last_and_an_event_holds_them_all(self):
        before = filled(KUNPENG, asks("a", 32), asks("x", 4))
        decision = decide(KUNPENG, before, asks("b", 33, 200, devices=["2"]), at("0", planned=nodes("1")))
        assert len(decision.sentence.encode()) <= 1024
        assert whats(decision)[:2] == ["nomination", "plan"]


def test_a_wide_set_stays_on_one_socket_where_distances_do_not_tell():
    far = dict.fromkeys(range(4), 20)
    numa_nodes = tuple(
        NumaNode(at, CpuSet.of((2 * at, 2 * at + 1)), 4 * machines.GIB, far | {at: 10}) for at in range(4)
    )
    machine = Machine(numa_nodes, sockets=(cpus("0-1,4-5"), cpus("2-3,6-7")))
    assert decide(machine, Occupancy(), asks("a", 4), Kin()).numa_nodes == nodes("0,2")
    assert decide(replace(machine, sockets=()), Occupancy(), asks("a", 4), Kin()).numa_nodes == nodes("0-1")
