"""What the enforcer does with a node's containers, event by event."""

from dataclasses import replace

import pytest

from enforcer.hook.facts.pods import MARK
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.rules import Rules
from numakin.placement.model.topology import Machine
from numakin.placement.optin.quotas import Quota
from numakin.wire import nri_pb2 as nri
from tests import machines
from tests.enforcer.hook.world import GIB, World, container, learned, member, pod, two_numa_nodes


def test_members_of_a_group_share_one_numa_node(world: World) -> None:
    for name in ("a", "b", "c"):
        world.create(member(name), container(name))
    assert {world.cpus(name) for name in "abc"} == {world.cpus("a")}
    assert world.cpus("a") in {"0-3,8-11", "4-7,12-15"}
    assert world.mems("a") in {"0", "1"}


def test_another_group_goes_to_the_emptier_numa_node(world: World) -> None:
    world.create(member("a"), container("a"))
    world.create(member("x", group="other"), container("x"))
    assert world.mems("a") == "0"
    assert world.mems("x") == "1"


def test_a_container_that_has_not_opted_in_gets_no_adjustment_and_no_update(world: World) -> None:
    plain = container("plain", cpus=2)
    assert world.agent.create_container(pod("plain"), plain) == (None, [])
    assert world.agent.update_container(pod("plain"), plain, plain.linux.resources) == []
    assert world.agent.stop_container(pod("plain"), plain) == []
    assert world.agent.synchronize([pod("plain")], [plain]) == []
    assert world.agent.records.take() == []


def test_a_container_that_has_not_opted_in_still_takes_room(world: World) -> None:
    world.agent.create_container(pod("plain"), container("plain", cpus=14))
    world.create(member("a"), container("a", cpus=2))
    assert world.cpus("a") == "0-15", "no NUMA node has two CPUs left: the member is left open"


def test_a_member_whose_cpuset_somebody_else_set_is_left_alone(world: World) -> None:
    claimed = container("a")
    claimed.linux.resources.cpu.cpus = "2-3"
    assert world.agent.create_container(member("a"), claimed) == (None, [])
    assert world.agent.records.counts["yielded"] == 1
    assert world.last.event == "yielded"


def test_a_later_claim_of_the_kubelet_makes_us_yield(world: World) -> None:
    mine = container("a")
    world.create(member("a"), mine)
    asked = nri.LinuxResources()
    asked.cpu.cpus, asked.cpu.mems = "5", "1"
    assert world.agent.update_container(member("a"), mine, asked) == []
    assert world.agent.occupancy.allocations["a"].externally_managed
    assert str(world.agent.occupancy.allocations["a"].cpus) == "5"
    assert world.agent.records.counts["yielded"] == 1


@pytest.mark.parametrize("sandbox", [member("a"), pod("a")], ids=["member", "not opted in"])
def test_where_another_owner_keeps_a_container_is_followed(world: World, sandbox: nri.PodSandbox) -> None:
    """As the kubelet's CPU manager names the CPUs of every container anew when one comes that has some alone."""
    everyone = replace(world.agent.occupancy, rules=Rules(everyone=True))
    world.agent.ledger.occupancy = everyone
    theirs = container("a", cpus=3)
    theirs.linux.resources.cpu.cpus = "1-3"
    world.agent.create_container(sandbox, theirs)
    for cpus, home in (("5-7", "1"), ("0-15", "0-1"), ("1", "0")):
        asked = nri.LinuxResources(cpu=nri.LinuxCPU(cpus=cpus))
        assert world.agent.update_container(sandbox, theirs, asked) == []
        assert str(world.agent.occupancy.reservations["a"].numa_nodes) == home
        assert world.agent.occupancy.allocations["a"].externally_managed
    assert str(world.agent.occupancy.allocations["a"].cpus) == "1"


def test_what_is_asked_for_together_with_another_owners_cpuset_counts(world: World) -> None:
    mine = container("a", cpus=1)
    world.create(member("a"), mine)
    asked = nri.LinuxResources(cpu=nri.LinuxCPU(cpus="4-7"))
    asked.cpu.shares.value = 3 * 1024
    world.agent.update_container(member("a"), mine, asked)
    assert world.agent.occupancy.cpu_load(world.machine) == {0: 0, 1: 3000}


def test_an_in_place_resize_changes_what_the_reservation_counts(world: World) -> None:
    mine = container("a", cpus=1)
    world.create(member("a"), mine)
    asked = nri.LinuxResources()
    asked.cpu.shares.value = 3 * 1024
    assert world.agent.update_container(member("a"), mine, asked) == []
    assert world.agent.occupancy.reservations["uid-a"].demand.cpu_milli == 3000


class TestMemoryOfDevices:
    @pytest.fixture
    def world(self) -> World:
        return World(machines.GPU_MEMORY)

    def test_members_are_bound_to_none_and_get_it_back_at_release(self, world: World) -> None:
        for at in range(4):
            world.create(member(f"m{at}", group=f"g{at}"), container(f"m{at}", 1, 6 * GIB))
        assert {world.mems(f"m{at}") for at in range(4)} <= {"0", "8", "0,8,254-255"}
        world.apply(world.agent.release())
        assert {world.mems(f"m{at}") for at in range(4)} == {"0,8,254-255"}

    def test_a_member_whose_memory_nobody_has_bound_is_taken_for_open(self, world: World) -> None:
        first = container("a", 1, 20 * GIB)
        world.create(member("a"), first)
        assert world.mems("a") == "0,8,254-255"
        before = world.agent.occupancy.allocations
        world.started().synchronize([member("a")], [first])
        assert world.agent.occupancy.allocations == before


class Broken(Machine):
    """Its distances can't be asked for: a fault of ours in the midst of a decision."""

    def nearest_mems(self, numa_nodes: NumaSet) -> NumaSet:
        raise KeyError(numa_nodes)

    def nodes_of(self, cpus: CpuSet) -> NumaSet:
        if len(cpus) == 1:
            raise KeyError(cpus)
        return super().nodes_of(cpus)


class TestAFaultInADecision:
    @pytest.fixture
    def world(self) -> World:
        whole = two_numa_nodes()
        return World(Broken(whole.numa_nodes, whole.cores))

    def test_leaves_the_container_open_and_counts_what_it_asks_for(self, world: World) -> None:
        assert world.create(member("a"), container("a", 2)) is None
        assert world.agent.records.counts["failed"] == 1
        assert world.agent.occupancy.reservations["uid-a"].demand.cpu_milli == 2000
        assert world.last.reasons[0].what == "fault"

    def test_costs_no_other_container_its_place_at_synchronize(self, world: World) -> None:
        for name in "ab":
            world.cgroups[f"/kubepods/{name}"] = world.machine.cpus, world.machine.mems
        asked = [member("a"), member("b")], [container("a"), container("b")]
        assert world.agent.synchronize(*asked) == []
        assert world.agent.records.counts["failed"] == 2
        assert set(world.agent.occupancy.reservations) == {"uid-a", "uid-b"}

    def test_over_a_running_container_leaves_it_alone_and_takes_the_others_over(self, world: World) -> None:
        pool = CpuSet.parse("0-3,8-11"), NumaSet.parse("0")
        world.cgroups |= {"/kubepods/a": (CpuSet.of((1,)), NumaSet()), "/kubepods/b": pool}
        asked = [member("a"), member("b")], [container("a"), container("b")]
        assert world.agent.synchronize(*asked) == []
        assert world.agent.records.counts["failed"] == 1
        assert set(world.agent.occupancy.allocations) == {"b"}


def test_a_restarted_container_finds_its_place_again(world: World) -> None:
    first = container("a")
    world.create(member("a"), first)
    world.agent.stop_container(member("a"), first)
    world.create(member("crowd", group="crowd"), container("crowd"))
    again = container("a2")
    world.create(member("a"), again)
    assert world.cpus("a2") == world.cpus("a")


@pytest.mark.parametrize("scope", ["pod", "container"])
def test_standing_aside_leaves_no_room_taken_twice(world: World, scope: str) -> None:
    for name in ("a", "b"):
        mine = container(name, cpus=2)
        mine.name = name
        world.create(pod("p", group="web", scope=scope), mine)
    asked = nri.LinuxResources()
    asked.cpu.cpus = "5"
    for name in ("a", "b"):
        mine = container(name, cpus=2)
        mine.name = name
        world.agent.update_container(pod("p", group="web", scope=scope), mine, asked)
    assert world.agent.occupancy.reservations.keys() == {"a", "b"}
    assert sum(world.agent.occupancy.cpu_load(world.machine).values()) == 4000


def test_a_container_that_was_placed_by_itself_stays_so_when_its_namespace_may_not_ask_for_that_any_more(
    world: World,
) -> None:
    sandbox, second = pod("p", group="web", scope="container", cpus="exclusive"), container("b", cpus=5)
    world.create(sandbox, container("a", cpus=5))
    second.name = "second"
    world.create(sandbox, second)
    assert world.agent.occupancy.reservations.keys() == {"uid-p", "uid-p/second"}
    world.agent.limited({"shop": Quota(keys=frozenset({"cpus"}))})
    world.apply(world.agent.update_container(sandbox, second, container("b", cpus=6).linux.resources))
    assert world.agent.occupancy.allocations["b"].reservation == "uid-p/second"
    assert sum(world.agent.occupancy.cpu_load(world.machine).values()) == 11_000


class TestLearned:
    """`auto` members have no group by name: what traffic taught brings them together."""

    def test_without_knowledge_they_go_where_it_is_emptiest(self, world: World) -> None:
        for name in ("a", "b"):
            world.create(member(name, group="auto"), container(name))
        assert (world.mems("a"), world.mems("b")) == ("0", "1")

    def test_a_pod_whose_peers_are_known_joins_them(self, world: World) -> None:
        world.create(member("a", group="auto"), container("a"))
        learned(world, "uid-b", {"uid-a": 5.0})
        world.create(member("b", group="auto"), container("b"))
        assert world.mems("b") == world.mems("a")

    def test_a_new_replica_starts_with_what_its_workload_learned(self, world: World) -> None:
        world.create(member("a", group="auto"), container("a"))
        learned(world, "ns/Deployment/web", {"uid-a": 5.0})
        replica = member("web-6d4cf-x2x7q", group="auto")
        replica.namespace = "ns"
        replica.labels["pod-template-hash"] = "6d4cf"
        world.create(replica, container("r"))
        assert world.mems("r") == world.mems("a")


class TestRestart:
    """Nothing is kept that can't be rebuilt from the runtime's list and the cgroups."""

    def test_members_that_are_pinned_right_are_left_alone(self, world: World) -> None:
        made = {name: container(name) for name in "abc"}
        for name, first in made.items():
            world.create(member(name), first)
        before = world.agent.occupancy
        assert world.started().synchronize([member(name) for name in "abc"], list(made.values())) == []
        assert world.agent.occupancy.reservations == before.reservations
        assert world.agent.occupancy.allocations == before.allocations

    def test_members_that_started_without_us_are_pinned_with_their_group(self, world: World) -> None:
        world.create(member("a"), container("a"))
        missed = container("b")
        world.cgroups["/kubepods/b"] = (world.machine.cpus, world.machine.mems)
        first = container("a")
        first.annotations[MARK] = "x"
        updates = world.started().synchronize([member("a"), member("b")], [first, missed])
        assert [update.container_id for update in updates] == ["b"]
        world.apply(updates)
        assert (world.cpus("b"), world.mems("b")) == (world.cpus("a"), world.mems("a"))

    def test_a_cpuset_that_is_not_ours_is_respected(self, world: World) -> None:
        world.cgroups["/kubepods/a"] = (CpuSet.parse("2-3"), NumaSet.parse("0-1"))
        assert world.started().synchronize([member("a")], [container("a")]) == []
        assert world.agent.records.counts["yielded"] == 1

    def test_stopped_containers_hold_nothing(self, world: World) -> None:
        ended = container("a")
        ended.state = nri.CONTAINER_STOPPED
        assert world.agent.synchronize([member("a")], [ended]) == []
        assert not world.agent.occupancy.allocations


def test_a_container_that_started_with_another_cpuset_than_it_was_given_is_pinned_again(world: World) -> None:
    mine = container("a")
    world.create(member("a"), mine)
    assert world.agent.post_start_container(member("a"), mine) == []
    world.cgroups["/kubepods/a"] = (world.machine.cpus, world.machine.mems)
    (update,) = world.agent.post_start_container(member("a"), mine)
    assert update.linux.resources.cpu.cpus == "0-3,8-11"
    world.agent.moves.take_along([update])  # for a runtime that takes none out of turn
    world.create(member("own", cpus="exclusive"), container("own", cpus=2))
    assert world.cpus("a") == str(CpuSet.parse("0-3,8-11") - CpuSet.parse(world.cpus("own"))), "as it is due by then"


@pytest.mark.parametrize(("claimed", "has"), [("", "0-1"), ("1", "0")], ids=["its CPUs alone", "its memory too"])
def test_memory_that_we_have_bound_is_open_once_another_owner_takes_over(world: World, claimed: str, has: str) -> None:
    """As the kubelet does whose CPU manager was switched on: nobody would open it when the container may use more."""
    mine = container("a")
    world.create(member("a"), mine)
    assert world.mems("a") == "0"
    written = nri.LinuxResources(cpu=nri.LinuxCPU(cpus="0-15", mems=claimed))
    world.apply(world.agent.update_container(member("a"), mine, written))
    assert world.agent.occupancy.allocations["a"].externally_managed
    assert world.mems("a") == has, "the rest is the other owner's word"


def test_so_is_memory_whose_opening_the_runtime_has_not_carried_out_by_then(world: World) -> None:
    sandbox, mine = member("a", memory="bind"), container("a")
    world.create(sandbox, mine)
    world.agent.update_container(sandbox, mine, container("a", memory=20 * GIB).linux.resources)
    assert world.mems("a") == "0"
    written = nri.LinuxResources(cpu=nri.LinuxCPU(cpus="0-15"))
    world.apply(world.agent.update_container(sandbox, mine, written))
    assert world.agent.occupancy.allocations["a"].externally_managed
    assert world.mems("a") == "0-1"


def test_memory_that_was_opened_while_a_container_was_starting_is_open_after_its_start(world: World) -> None:
    """The runtime starts it with what it was created with."""
    sandbox, mine = member("a", memory="bind"), container("a")
    world.create(sandbox, mine)
    world.agent.update_container(sandbox, mine, container("a", memory=20 * GIB).linux.resources)
    assert world.mems("a") == "0"
    world.start(sandbox, mine)
    assert world.mems("a") == "0-1"


def test_a_bad_annotation_is_counted_and_the_pod_starts_as_if_without_it(world: World) -> None:
    world.create(member("a", cpus="all-of-them"), container("a"))
    assert world.cpus("a") == "0-3,8-11"
    world.agent.records.compose()
    assert world.agent.records.counts["bad annotation"] == 1


def test_bad_annotations_are_said_once_for_a_pod_in_one_bounded_line(world: World, caplog) -> None:
    pod = member("a", cpus="all-of-them")
    pod.annotations.update({f"k{number:05}.numakin.io": "x" for number in range(17_000)})
    pod.annotations["cpus.numakin.io/container.second"] = "some"
    for name in ("first", "second", "third"):
        first = container(name)
        first.name = name
        world.create(pod, first)
        assert not caplog.records, "nothing is worded before the runtime has its answer"
    world.agent.records.compose()
    output = [record.fields["problems"] for record in caplog.records if record.message == "annotations not taken"]
    assert [line.count("annotation") for line in output] == [9, 1]
    assert output[0].endswith("; and 16993 more annotations that are not allowed")
    assert "container.second" in output[1]
    assert world.agent.records.counts["bad annotation"] == 17_002


class TestHugepages:
    """As the kubelet tells the runtime: a limit for each size that the machine has."""

    @pytest.fixture
    def world(self) -> World:
        return World(machines.HUGE)

    @staticmethod
    def with_pages(name: str, **limits: int) -> nri.Container:
        made = container(name)
        for size, limit in limits.items():
            made.linux.resources.hugepage_limits.add(page_size=size.removeprefix("of_"), limit=limit)
        return made

    def test_a_pod_goes_where_they_are_set_aside(self, world: World) -> None:
        world.create(member("a"), self.with_pages("a", of_2MB=0, of_1GB=8 * GIB))
        assert world.mems("a") == "1"

    def test_a_pod_that_asks_for_none_goes_anywhere(self, world: World) -> None:
        world.create(member("a"), self.with_pages("a", of_2MB=0, of_1GB=0))
        assert world.mems("a") == "0"

    def test_a_size_that_is_not_understood_is_left_out(self, world: World) -> None:
        world.create(member("a"), self.with_pages("a", of_2Mi=4 * GIB, of_0MB=GIB))
        assert world.mems("a") == "0"
