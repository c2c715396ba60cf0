"""What was given outlives the process that gave it: no CPU is exclusive twice, nothing of ours is taken for another
owner's, nothing of another owner's for ours.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.rules import Rules
from numakin.placement.model.topology import Machine
from numakin.placement.optin.quotas import Quota
from numakin.placement.state.pools import shared
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.changing import without
from tests.enforcer.hook.world import GIB, container, limited, of_pod, path_of, pod, two_numa_nodes
from tests.enforcer.restarts import Restarting, ours
from tests.machines import NO_NUMA, machine


@pytest.fixture
def node(tmp_path: Path) -> Restarting:
    return Restarting(two_numa_nodes(), tmp_path)


def test_members_pinned_at_synchronize_are_ours_after_another_restart(node: Restarting) -> None:
    """The normal path: installed beside running pods, then upgraded. They carry no mark."""
    node.kill()
    node.create(pod("a", group="web"), container("a"))
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.start()
    before = dict(node.cgroups)
    assert len(node.cpus("own")) == 2
    node.kill()
    node.start()
    assert node.cgroups == before
    assert ours(node, "a")
    assert ours(node, "own")
    node.create(pod("new", group="web", cpus="exclusive"), container("new", 2))
    assert node.cpus("new").isdisjoint(node.cpus("own") | node.cpus("a"))
    node.release()
    assert {node.cpus(name) for name in ("a", "own", "new")} == {node.machine.cpus}


def test_members_pinned_at_synchronize_are_ours_though_the_run_folder_took_nothing(node: Restarting) -> None:
    """They carry no mark either; what they were given is kept in memory."""
    node.kill()
    node.create(pod("a", group="web"), container("a"))
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.fill()
    for _ in range(3):
        node.start()
        node.kill()
    node.start()
    assert ours(node, "a")
    assert ours(node, "own")
    node.create(pod("new", group="web", cpus="exclusive"), container("new", 2))
    assert node.cpus("new").isdisjoint(node.cpus("own") | node.cpus("a"))


def test_exclusive_cpus_given_at_synchronize_are_taken_from_the_pool_of_those_who_run(node: Restarting) -> None:
    node.create(pod("a", group="web"), container("a"))
    node.recorder.write()
    node.kill()
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.start()
    assert node.cpus("own").isdisjoint(node.cpus("a"))


def test_a_pool_that_shrank_after_the_last_record_is_still_ours(node: Restarting) -> None:
    node.create(pod("a", group="web"), container("a"))
    node.recorder.write()
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.kill()  # before that was written down
    node.start()
    assert ours(node, "a")
    assert ours(node, "own")
    assert node.cpus("own").isdisjoint(node.cpus("a"))


def test_a_pool_without_the_cpus_of_a_container_that_came_and_went_around_a_kill_is_still_ours(
    node: Restarting,
) -> None:
    """Which CPUs those were is written down nowhere."""
    node.create(pod("a", group="web"), container("a"))
    wide = node.cpus("a")
    node.recorder.write()
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.kill()  # before that was written down
    node.stop("own")
    assert node.cpus("a") <= wide != node.cpus("a")
    node.start()
    assert ours(node, "a")
    assert node.cpus("a") == wide


def test_a_pool_whose_update_was_never_carried_out_is_set_once_more(node: Restarting) -> None:
    node.create(pod("a", group="web"), container("a"))
    wide = node.cgroups[path_of("a")]
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.recorder.write()
    node.cgroups[path_of("a")] = wide
    node.kill()
    node.start()
    assert node.cpus("own").isdisjoint(node.cpus("a"))
    assert ours(node, "a")


@pytest.mark.parametrize("restarted", [False, True], ids=["the same process", "a new process"])
def test_a_pool_that_never_grew_because_our_answer_was_lost_is_still_ours(node: Restarting, *, restarted: bool) -> None:
    """A runtime that waited too long hangs up, and makes no update of the answer that comes after all."""
    node.create(pod("a", group="web"), container("a"))
    for name in ("own", "next"):
        node.create(pod(name, group="web", cpus="exclusive"), container(name, 2))
    node.stop("own", lost=True)
    node.recorder.write()
    agent, node.agent = node.agent, None
    node.stop("next")
    if restarted:
        node.start(joined=False)
    else:
        node.agent = agent
    pods, containers = zip(*node.running.values(), strict=True)
    assert len(node.agent.synchronize(pods, containers)) == 1
    assert ours(node, "a"), "that answer is lost, too"
    node.synchronize()
    assert ours(node, "a")
    assert node.cpus("a") == shared(node.machine, node.agent.occupancy, NumaSet.parse("0"))


def test_what_we_stood_aside_for_stays_another_owners_though_it_carries_our_mark(node: Restarting) -> None:
    node.create(pod("a", group="web"), container("a"))
    taken = node.running["a"]
    claim = container("a", claim="5").linux.resources
    assert node.agent.update_container(*taken, claim) == []
    node.cgroups[path_of("a")] = CpuSet.parse("5"), NumaSet.parse("0")
    node.recorder.write()
    node.kill()
    node.start()
    assert node.agent.occupancy.allocations["a"].externally_managed
    assert str(node.cpus("a")) == "5"


@pytest.mark.parametrize("wishes", [{}, {"cpus": "exclusive"}], ids=["shared", "exclusive"])
def test_a_member_that_has_another_cpuset_than_was_written_down_is_no_other_owners_for_life(
    node: Restarting, wishes: dict[str, str]
) -> None:
    """An owner that keeps cpusets writes again, over the runtime: then it is its own from there on."""
    node.create(pod("a", group="web", **wishes), container("a"))
    given = node.cpus("a")
    node.recorder.write()
    node.kill()
    node.cgroups[path_of("a")] = CpuSet.parse("2-7"), NumaSet.parse("0-1")
    node.start()
    assert ours(node, "a")
    assert node.cpus("a") == given
    claim = container("a", claim="2-7").linux.resources
    node.apply(node.agent.update_container(*node.running["a"], claim))
    assert not ours(node, "a")


def test_an_exclusive_one_that_was_refused_is_not_the_pools_owner_after_a_restart(tmp_path: Path) -> None:
    node = Restarting(two_numa_nodes(), tmp_path, rules=Rules(max_exclusive_cpus_per_namespace=3))
    node.create(pod("big", group="web", cpus="exclusive"), container("big", 4))
    node.recorder.write()
    before = dict(node.cgroups)
    node.kill()
    node.start()
    assert (node.agent.occupancy.exclusive, node.cgroups) == (CpuSet(), before)
    node.create(pod("small", group="web", cpus="exclusive"), container("small", 3))
    assert len(node.cpus("small")) == 3


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "registered again"])
@pytest.mark.parametrize(("asked", "has"), [(4, 4), (1, 1), (0.5, 0)], ids=["more", "fewer", "less than one"])
def test_a_resize_that_no_plugin_was_told_of_is_made_up_for(
    node: Restarting, asked: float, has: int, *, killed: bool
) -> None:
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.create(pod("a", group="web"), container("a"))
    node.recorder.write()
    node.running["own"][1].linux.resources.cpu.shares.value = int(1024 * asked)
    node.restart(killed=killed)
    assert len(node.agent.occupancy.allocations["own"].exclusive) == has
    assert node.cpus("own").isdisjoint(node.cpus("a")) == bool(has)
    reasons = node.agent.records.latest()["own"].reasons
    assert (reasons[0].what, reasons[0].number) == ("resized", f"{asked:g} CPUs")
    before = dict(node.cgroups)
    assert node.synchronize() == []
    assert node.cgroups == before


def test_one_that_can_not_have_what_it_asks_since_it_was_resized_is_told_why(tmp_path: Path) -> None:
    node = Restarting(two_numa_nodes(), tmp_path, rules=Rules(max_exclusive_cpus_per_namespace=3))
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.recorder.write()
    node.kill()
    node.running["own"][1].linux.resources.cpu.shares.value = 4 * 1024
    node.start()
    assert not node.agent.occupancy.exclusive
    (reasons,) = (record.reasons for record in node.agent.records.latest().values())
    assert [reason.what for reason in reasons][:2] == ["resized", "quota"]


def test_a_namespaces_quota_holds_before_the_extender_has_sent_it_again(node: Restarting) -> None:
    quotas = {"shop": Quota(exclusive_cpus=3, group_size=5, keys=frozenset({"cpus"}))}
    node.agent.ledger.demands.quotas = quotas
    node.recorder.write()
    node.kill()
    node.start()
    node.create(pod("big", group="web", cpus="exclusive"), container("big", 4))
    assert not node.agent.occupancy.exclusive
    assert node.agent.ledger.demands.quotas == quotas


def test_what_was_given_and_written_down_is_had_though_a_lower_quota_came_while_no_enforcer_ran(
    node: Restarting,
) -> None:
    """Whether or not the runtime has carried it out: who has more than a new quota keeps it."""
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 3))
    node.begin("own")
    given = node.cpus("own")
    node.recorder.write()
    node.kill()
    node.cgroups[path_of("own")] = node.machine.cpus_of(NumaSet.parse("0")), node.machine.mems
    node.start(joined=False)
    node.agent.limited({"shop": Quota(exclusive_cpus=2)})
    node.synchronize()
    assert node.cpus("own") == node.agent.occupancy.exclusive == given


@pytest.mark.parametrize("machine", [two_numa_nodes(), NO_NUMA], ids=["two NUMA nodes", "one"])
def test_members_are_ours_again_after_a_release(tmp_path: Path, machine: Machine) -> None:
    node = Restarting(machine, tmp_path)
    node.create(pod("a", group="web"), container("a"))
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.release()
    node.agent.resume()
    node.synchronize()
    assert ours(node, "a")
    assert len(node.agent.occupancy.allocations["own"].exclusive) == 2
    assert node.cpus("own").isdisjoint(node.cpus("a"))


@pytest.mark.parametrize("carried_out", [False, True], ids=["not carried out", "carried out"])
@pytest.mark.parametrize("written", [False, True], ids=["not written down", "written down"])
def test_a_kill_around_a_move_costs_an_exclusive_member_nothing(
    node: Restarting, *, carried_out: bool, written: bool
) -> None:
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.recorder.write()
    way = local.Moves.Way(reservation="uid-own", source="0", target="1")
    offer = local.Moves(generation=1 << 32, traffic=1.0, pays=-9.0, steps=[local.Moves.Step(ways=[way])])
    updates = node.agent.moves.make(offer.steps[0], offer)
    assert updates
    if written:
        node.recorder.sending()
        node.recorder.write()
    if carried_out:
        node.apply(updates)
    was = node.cpus("own")
    node.kill()
    node.start()
    assert node.cpus("own") == node.agent.occupancy.allocations["own"].exclusive == was
    node.create(pod("new", group="web"), container("new"))
    node.create(pod("next", group="web", cpus="exclusive"), container("next", 2))
    assert node.cpus("own").isdisjoint(node.cpus("new") | node.cpus("next"))


def test_containers_that_are_placed_one_by_one_are_found_each_at_its_place(node: Restarting) -> None:
    """And the pods that come after them are placed as they would have been."""
    apart = pod("apart", group="web", scope="container")
    apart.linux.pod_resources.cpu.shares.value = 8 * 1024
    for name in ("one", "two"):
        made = container(f"apart-{name}", 4)
        made.name, made.pod_sandbox_id = name, apart.id
        node.create(apart, made)
    node.create(pod("filler", group="bank"), container("filler", 7))
    before, cgroups = node.agent.occupancy, dict(node.cgroups)
    node.recorder.write()
    node.kill()
    node.start()
    assert node.cgroups == cgroups
    assert node.agent.occupancy.reservations == before.reservations


def stays_over_a_restart_though_its_namespace_may_ask_for_nothing(node: Restarting) -> None:
    before, cgroups = node.agent.occupancy, dict(node.cgroups)
    node.agent.limited({"shop": Quota(keys=frozenset())})
    node.recorder.write()
    node.kill()
    node.start()
    assert node.cgroups == cgroups
    assert node.agent.occupancy.allocations == before.allocations


def test_containers_that_were_placed_one_by_one_stay_though_their_namespace_may_not_ask_for_that_any_more(
    node: Restarting,
) -> None:
    apart = pod("apart", group="web", scope="container")
    for name in ("one", "two"):
        made = container(f"apart-{name}", 5)
        made.name, made.pod_sandbox_id = name, apart.id
        node.create(apart, made)
    before = node.agent.occupancy
    assert before.reservations.keys() == {"uid-apart", "uid-apart/two"}
    stays_over_a_restart_though_its_namespace_may_ask_for_nothing(node)
    assert node.agent.occupancy.reservations == before.reservations


@pytest.mark.parametrize("wish", [{"cpus": "shared-stable"}, {"cpus": "exclusive"}, {"memory": "bind"}], ids=str)
def test_what_runs_keeps_what_its_namespace_may_not_ask_for_any_more(node: Restarting, wish: dict[str, str]) -> None:
    node.create(pod("before", group="web", **wish), container("before", 2))
    stays_over_a_restart_though_its_namespace_may_ask_for_nothing(node)


def test_a_container_that_came_meanwhile_is_aligned_by_itself_where_its_pod_does_not_fit_together(
    node: Restarting,
) -> None:
    """As it is where the enforcer is there: it was spread over both NUMA nodes with its pod."""
    apart = pod("apart", group="web", scope="container")
    for name, cpus in (("one", 4), ("two", 6)):
        made = container(f"apart-{name}", cpus)
        made.name, made.pod_sandbox_id = name, apart.id
        node.create(apart, made)
        node.recorder.write()
        node.kill()
    node.start()
    homes = [node.machine.nodes_of(node.cpus(f"apart-{name}")) for name in ("one", "two")]
    assert sorted(map(str, homes)) == ["0", "1"]


def test_what_has_not_opted_in_and_was_kept_off_exclusive_cpus_is_no_other_owners(tmp_path: Path) -> None:
    """Whose CPUs those were that it lacks is known no more."""
    node = Restarting(two_numa_nodes(), tmp_path, rules=Rules(everyone=True))
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.create(pod("plain"), container("plain"))
    node.recorder.write()
    node.create(pod("next", group="web", cpus="exclusive"), container("next", 2))
    node.kill()
    node.stop("next")
    node.stop("own")
    node.start()
    assert node.cpus("plain") == node.machine.cpus
    node.create(pod("again", group="web", cpus="exclusive"), container("again", 4))
    assert node.cpus("again").isdisjoint(node.cpus("plain"))


def test_what_was_kept_off_exclusive_cpus_has_them_too_once_that_rule_is_taken_back(tmp_path: Path) -> None:
    """What another owner keeps to fewer CPUs is left alone."""
    node = Restarting(two_numa_nodes(), tmp_path, rules=Rules(everyone=True))
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.create(pod("plain"), container("plain"))
    node.create(pod("another"), container("another", claim="4-7"))
    for name in ("own", "plain", "another"):
        node.begin(name)
    node.recorder.write()
    node.kill()
    node.rules = Rules()
    node.start()
    assert node.cpus("own") == node.agent.occupancy.exclusive
    assert node.cpus("plain") == node.machine.cpus
    assert str(node.cpus("another")) == "4-7"


def test_what_was_kept_off_cpus_that_nobody_had_when_it_was_written_down_is_no_other_owners(tmp_path: Path) -> None:
    """The only one with CPUs of its own came and went before that was written."""
    node = Restarting(two_numa_nodes(), tmp_path, rules=Rules(everyone=True))
    node.create(pod("plain"), container("plain"))
    node.recorder.write()
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.kill()
    node.stop("own")
    node.start()
    assert node.cpus("plain") == node.machine.cpus
    node.create(pod("again", group="web", cpus="exclusive"), container("again", 4))
    assert node.cpus("again").isdisjoint(node.cpus("plain"))


def test_what_starts_with_all_cpus_though_the_runtime_lists_fewer_is_kept_off_exclusive_ones(tmp_path: Path) -> None:
    """A runtime takes an update for a container that is starting, and starts it with what it was created with."""
    node = Restarting(two_numa_nodes(), tmp_path, rules=Rules(everyone=True), unified=True)
    plain = container("plain")
    plain.state = nri.CONTAINER_CREATED
    node.create(pod("plain"), plain)
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.recorder.write()
    node.kill()
    node.begin("plain")
    assert node.cpus("plain") == node.machine.cpus
    node.start()
    assert node.cpus("own").isdisjoint(node.cpus("plain"))


def test_what_has_all_cpus_is_no_other_owners_whatever_the_runtime_lists(tmp_path: Path) -> None:
    """It lists what was set while the start was under way, which then took the cpuset of the creation."""
    node = Restarting(two_numa_nodes(), tmp_path, rules=Rules(everyone=True))
    made = container("plain")
    made.state = nri.CONTAINER_CREATED
    node.create(pod("plain"), made)
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.recorder.write()
    node.attached = False
    node.begin("plain")
    node.stop("own")
    (node.run_dir / "allocations.json").unlink()
    node.kill()
    node.start()
    assert not node.agent.occupancy.allocations["plain"].externally_managed
    node.create(pod("again", group="web", cpus="exclusive"), container("again", 4))
    assert node.cpus("again").isdisjoint(node.cpus("plain"))


def test_one_whose_pods_other_container_is_open_stays_though_some_cpus_are_reserved(tmp_path: Path) -> None:
    """They were before: its pod was decided anew at each start, though its cpuset was to stay."""
    node = Restarting(two_numa_nodes(), tmp_path, reserved=CpuSet.of((0,)))
    of, late = pod("a", group="web", cpus="shared-stable"), container("side")
    late.name, late.pod_sandbox_id = "side", of.id
    node.create(of, container("app"))
    node.create(of, late)
    ledger = node.agent.ledger
    held = ledger.occupancy.allocations["side"]
    ledger.occupancy = ledger.occupancy.with_allocation(replace(held, cpus=CpuSet(), open=True, stable=False))
    before = ledger.occupancy
    assert node.agent.rehoming.off_reserved() == []
    assert ledger.occupancy is before


def test_a_member_that_fits_nowhere_any_more_has_all_cpus(node: Restarting) -> None:
    """Its own are reserved by now, and the rest is taken."""
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.recorder.write()
    node.kill()
    node.create(pod("plain"), container("plain", 15))
    node.reserved = node.cpus("own")
    node.start()
    assert not node.agent.occupancy.allocations["own"].cpus
    assert node.cpus("own") == node.machine.all_cpus


def test_a_mark_that_the_pods_author_wrote_is_not_believed(node: Restarting) -> None:
    node.kill()
    forged = pod("a", group="web", cpus="exclusive")
    forged.annotations["pinned.numakin.io"] = "cpus=0-7 mems=0 exclusive=0-7 homes=0"
    made = container("a", 8)
    made.annotations.update(forged.annotations)
    node.create(forged, made)
    node.cgroups[path_of("a")] = CpuSet.parse("0-6,12"), NumaSet.parse("0")
    node.start()
    assert node.agent.occupancy.allocations["a"].externally_managed


def test_a_release_outlives_the_runtimes_restart_and_ours_until_it_is_ended(node: Restarting) -> None:
    node.create(pod("a", group="web"), container("a"))
    node.release()
    node.synchronize()
    assert node.cpus("a") == node.machine.cpus
    node.kill()
    node.create(pod("b", group="web"), container("b"))
    node.start()
    assert {node.cpus("a"), node.cpus("b")} == {node.machine.cpus}
    node.agent.resume()
    node.synchronize()
    assert node.cpus("a") == node.cpus("b") != node.machine.cpus


@pytest.mark.parametrize("times_lost", [1, 2])
def test_one_that_had_no_home_is_given_back_too_where_its_release_was_lost(node: Restarting, times_lost: int) -> None:
    """It was left open, off the CPUs that another one had for itself."""
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 4))
    node.create(pod("open", group="web", policy="none"), container("open"))
    assert node.cpus("open") != node.machine.all_cpus
    node.release(lost_after=0)
    for _ in range(times_lost - 1):
        node.synchronize(lost=True)
    node.synchronize()
    assert node.cpus("open") == node.cpus("own") == node.machine.all_cpus


def test_a_release_that_was_not_carried_out_is_at_the_next_synchronize(node: Restarting) -> None:
    node.kill()
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.start()
    node.agent.release()
    node.recorder.write()
    node.kill()
    node.start()
    assert node.cpus("own") == node.machine.cpus


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "registered again"])
@pytest.mark.parametrize("times_lost", [1, 2])
def test_memory_that_we_have_bound_is_open_for_another_owner_though_the_answer_was_lost(
    node: Restarting, times_lost: int, *, killed: bool
) -> None:
    sandbox, mine = pod("a", group="web", memory="bind"), container("a")
    node.create(sandbox, mine)
    assert node.mems("a") == NumaSet.parse("0")
    written = nri.LinuxResources(cpu=nri.LinuxCPU(cpus="4-7"))
    node.apply(node.heard.update_container(sandbox, mine, written), lost=True)
    node.cgroups[path_of("a")] = CpuSet.parse("4-7"), node.cgroups[path_of("a")][1]
    node.recorder.write()
    for lost in [*[True] * (times_lost - 1), False]:
        assert node.mems("a") == NumaSet.parse("0")
        if killed:
            node.kill()
            node.start(joined=False)
        node.synchronize(lost=lost)
    assert (node.cpus("a"), node.mems("a")) == (CpuSet.parse("4-7"), node.machine.all_mems)
    assert not node.synchronize()


def test_where_all_memory_is_on_one_numa_node_there_is_none_to_give_back(tmp_path: Path) -> None:
    node = Restarting(machine("one NUMA node", ["0-7"], [16]), tmp_path)
    sandbox, mine = pod("a", group="web", memory="bind"), container("a")
    node.create(sandbox, mine)
    node.apply(node.heard.update_container(sandbox, mine, nri.LinuxResources(cpu=nri.LinuxCPU(cpus="4-7"))))
    node.cgroups[path_of("a")] = CpuSet.parse("4-7"), node.cgroups[path_of("a")][1]
    assert not node.synchronize()


def test_so_is_it_on_a_node_that_was_released_meanwhile(node: Restarting) -> None:
    sandbox, mine = pod("a", group="web", memory="bind"), container("a")
    node.create(sandbox, mine)
    written = nri.LinuxResources(cpu=nri.LinuxCPU(cpus="4-7"))
    node.apply(node.heard.update_container(sandbox, mine, written), lost=True)
    node.cgroups[path_of("a")] = CpuSet.parse("4-7"), node.cgroups[path_of("a")][1]
    node.release(lost_after=0)
    assert node.mems("a") == NumaSet.parse("0")
    node.synchronize()
    assert (node.cpus("a"), node.mems("a")) == (CpuSet.parse("4-7"), node.machine.all_mems)


def test_memory_that_the_other_owner_binds_itself_stays_so(node: Restarting) -> None:
    sandbox, mine = pod("a", group="web", memory="bind"), container("a")
    node.create(sandbox, mine)
    node.apply(node.heard.update_container(sandbox, mine, nri.LinuxResources(cpu=nri.LinuxCPU(cpus="4-7"))), lost=True)
    node.attached = True
    word = nri.LinuxResources(cpu=nri.LinuxCPU(cpus="5-7", mems="0"))
    node.apply(node.heard.update_container(sandbox, mine, word))
    node.cgroups[path_of("a")] = CpuSet.parse("5-7"), NumaSet.parse("0")
    node.recorder.write()
    node.restart(killed=True)
    assert node.mems("a") == NumaSet.parse("0")


def test_one_that_can_not_be_narrowed_any_more_has_all_that_the_other_owner_gave_it(tmp_path: Path) -> None:
    """What it was narrowed to is our work, and nobody else would undo it."""
    node = Restarting(two_numa_nodes(), tmp_path, within_others=True, unified=True)
    node.create(pod("a", group="web", memory="bind"), container("a", claim="0-14"))
    node.begin("a")
    assert (str(node.cpus("a")), str(node.mems("a"))) == ("0-3,8-11", "0")
    node.recorder.write()
    node.kill()
    node.becomes(without(node.machine, CpuSet.parse("0-3,8-11")))
    node.start()
    assert not ours(node, "a")
    assert (str(node.cpus("a")), node.mems("a")) == ("4-7,12-14", node.machine.all_mems)


def test_so_has_one_whose_runtime_takes_that_with_another_answer_alone(tmp_path: Path) -> None:
    node = Restarting(two_numa_nodes(), tmp_path, within_others=True, unified=True, at_any_time=False)
    for name in ("other", "another"):
        node.create(pod(name, group="web"), container(name))
    node.create(pod("a", group="web", memory="bind"), container("a", claim="0-14"))
    node.begin("a")
    node.stop("another")
    narrowed = node.cgroups[path_of("a")]
    assert str(narrowed[0]) == "0-3,8-11"
    node.becomes(without(node.machine, node.cpus("a")))
    assert not ours(node, "a")
    assert node.cgroups[path_of("a")] == narrowed
    node.stop("other")
    assert node.cpus("a") == CpuSet.parse("0-14") & node.machine.cpus
    assert node.mems("a") == node.machine.all_mems


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "registered again"])
def test_one_that_was_to_be_narrowed_stays_within_the_other_owners_cpus_though_the_answer_came_too_late(
    tmp_path: Path, *, killed: bool
) -> None:
    """So it does not carry our word of them."""
    node = Restarting(two_numa_nodes(), tmp_path, within_others=True)
    node.create(pod("a", group="web"), container("a", claim="0-14"), lost=True)
    node.recorder.write()
    node.restart(killed=killed)
    assert node.cpus("a") == CpuSet.parse("0-3,8-11")
    assert node.agent.ledger.within == {"a": CpuSet.parse("0-14")}
    assert "a" not in node.agent.ledger.requests, "it may be placed nowhere else"
    node.release()
    assert node.cpus("a") == CpuSet.parse("0-14")


def test_cpus_of_a_stable_cpuset_are_not_taken_for_the_own_ones_of_who_has_them_by_now(node: Restarting) -> None:
    """As many as it was given, but by another owner who wrote meanwhile."""
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.create(pod("still", group="bank", cpus="shared-stable"), container("still"))
    node.recorder.write()
    own, still = node.cpus("own"), node.cpus("still")
    node.kill()
    node.cgroups[path_of("own")] = CpuSet.of([*still][:2]), node.machine.mems
    node.start()
    assert (node.cpus("own"), node.cpus("still")) == (own, still)


@pytest.mark.parametrize("known", [True, False], ids=["starts", "started before the enforcer"])
def test_a_container_that_was_being_created_while_its_pod_was_placed_elsewhere_follows_it(
    node: Restarting, *, known: bool
) -> None:
    """The runtime lists it nowhere until it is created, so that its pod's place was given up."""
    of = pod("still", group="web", cpus="shared-stable")
    side = container("side")
    side.name, side.pod_sandbox_id, side.state = "side", of.id, nri.CONTAINER_CREATED
    node.create(of, side, under_way=True)
    node.synchronize()
    node.agent.ledger.end_pod(of)
    node.create(pod("large", group="bank", cpus="exclusive"), container("large", 7))
    node.create(of, container("still"))
    home = node.machine.nodes_of(node.cpus("still"))
    assert node.machine.nodes_of(node.cpus("side")).isdisjoint(home)
    if not known:
        node.recorder.write()
        node.kill()
    node.begin("side")
    if not known:
        node.start()
    assert node.machine.nodes_of(node.cpus("side")) == node.machine.nodes_of(node.cpus("still"))


@pytest.mark.parametrize("known", [True, False], ids=["starts", "started before the enforcer"])
def test_one_whose_creation_nobody_knew_of_takes_no_more_exclusive_cpus_than_its_namespace_has_left(
    tmp_path: Path, *, known: bool
) -> None:
    """Another one was given them meanwhile."""
    node = Restarting(two_numa_nodes(), tmp_path, rules=Rules(max_exclusive_cpus_per_namespace=3))
    made = container("own", 2)
    made.state = nri.CONTAINER_CREATED
    node.create(pod("own", group="web", cpus="exclusive"), made, under_way=True)
    node.synchronize()
    node.agent.expect(pb.Expect(pod="uid-next", numa_nodes="1"))
    node.create(pod("next", group="web", cpus="exclusive"), container("next", 2))
    assert node.cpus("next").isdisjoint(node.cpus("own"))
    if not known:
        node.recorder.write()
        node.kill()
    node.begin("own")
    if not known:
        node.start()
    assert node.agent.occupancy.exclusive == node.cpus("next")
    assert len(node.cpus("next")) == 2
    assert node.cpus("own").isdisjoint(node.cpus("next"))


def test_one_whose_creation_nobody_knew_of_has_the_cpus_of_its_pods_budget_where_those_are_now(
    node: Restarting,
) -> None:
    """Its pod was placed elsewhere meanwhile."""
    of = pod("p", group="web", cpus="exclusive")
    of.linux.pod_resources.CopyFrom(limited(2))
    app, side = (of_pod(of, name, 2) for name in ("app", "side"))
    app.state = nri.CONTAINER_CREATED
    node.create(of, app, under_way=True)
    node.synchronize()
    node.agent.ledger.end_pod(of)
    node.agent.expect(pb.Expect(pod=of.uid, numa_nodes="1"))
    node.create(of, side)
    assert node.cpus("p-side").isdisjoint(node.cpus("p-app"))
    node.recorder.write()
    node.kill()
    node.begin("p-app")
    node.start()
    assert node.cpus("p-app") == node.cpus("p-side") == node.agent.occupancy.exclusive


def test_one_whose_creation_nobody_knew_of_leaves_a_numa_node_of_which_nothing_is_left_to_share(
    tmp_path: Path,
) -> None:
    """Another one has all of it but the reserved CPU."""
    node = Restarting(two_numa_nodes(), tmp_path, reserved=CpuSet.of((0,)))
    for name in ("web", "own"):
        node.agent.expect(pb.Expect(pod=f"uid-{name}", numa_nodes="0"))
    made = container("web")
    made.state = nri.CONTAINER_CREATED
    node.create(pod("web", group="web"), made, under_way=True)
    node.synchronize()
    node.agent.ledger.end_pod(pod("web"))
    node.create(pod("own", group="bank", cpus="exclusive"), container("own", 7))
    assert not node.cpus("web").isdisjoint(node.cpus("own"))
    node.begin("web")
    assert node.cpus("web").isdisjoint(node.cpus("own"))


def test_one_that_was_resized_has_as_many_cpus_though_the_update_was_lost_and_the_enforcer_killed(
    node: Restarting,
) -> None:
    """Its cgroup has what it was given before."""
    made = container("own", 3)
    node.create(pod("own", group="web", cpus="exclusive"), made)
    node.recorder.write()
    node.create(pod("other", group="other"), container("other"), lost=True)
    made.linux.resources.cpu.shares.value = 2048
    node.synchronize(lost=True)
    node.kill()
    node.start()
    assert node.cpus("own") == node.agent.occupancy.exclusive
    assert len(node.agent.occupancy.exclusive) == 2


@pytest.mark.parametrize("killed", [False, True], ids=["registered again", "killed"])
def test_memory_that_was_opened_is_open_though_the_runtime_never_got_that_answer(
    node: Restarting, *, killed: bool
) -> None:
    """It may use more than its NUMA node has: the kernel would kill it there."""
    made = container("a")
    node.create(pod("a", group="web", memory="bind"), made)
    assert node.mems("a") == NumaSet.parse("0")
    made.linux.resources.memory.limit.value = 20 * GIB
    node.apply(node.agent.update_container(*node.running["a"], made.linux.resources), lost=True)
    node.recorder.write()
    node.restart(killed=killed)
    assert node.mems("a") == node.machine.all_mems
    assert node.synchronize() == []


def test_memory_is_opened_of_one_that_was_resized_before_it_was_written_down(node: Restarting) -> None:
    """Its mark does not say what it asked for when it was bound."""
    made = container("a")
    node.create(pod("a", group="web", memory="bind"), made)
    assert node.mems("a") == NumaSet.parse("0")
    node.kill()
    made.linux.resources.memory.limit.value = 20 * GIB
    node.start()
    assert node.mems("a") == node.machine.all_mems
    assert ours(node, "a")
    assert node.synchronize() == []
