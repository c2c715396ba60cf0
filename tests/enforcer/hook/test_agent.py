"""What the enforcer does with a node's containers, event by event."""

import pytest

from enforcer.hook.agent import Agent
from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.facts.pods import MARK, Claim
from enforcer.local.learned import kin_table
from placement.decide.decide import Reason
from placement.model.cpuset import CpuSet, NumaSet
from placement.model.topology import Machine, NumaNode, uniform_distances
from proto import nri_pb2 as nri
from proto import report_pb2 as pb
from tests import machines

GIB = 1 << 30


def two_numa_nodes() -> Machine:
    far = uniform_distances((0, 1))
    cores = tuple(CpuSet.of((cpu, cpu + 8)) for cpu in range(8))
    return Machine(
        (
            NumaNode(0, CpuSet.parse("0-3,8-11"), 16 * GIB, far[0]),
            NumaNode(1, CpuSet.parse("4-7,12-15"), 16 * GIB, far[1]),
        ),
        cores=cores,
    )


class World:
    """One node: its agent, and the cgroups that the runtime would have written."""

    def __init__(self, machine: Machine | None = None) -> None:
        self.machine = machine or two_numa_nodes()
        self.cgroups: dict[str, tuple[CpuSet, NumaSet]] = {}
        self.pod_cgroups: set[str] = set()
        self.nominations = Nominations()
        self.limited: bool | None = True
        """Whether every container of a pod has a memory limit, as its pods' cgroups show it; None: they are not seen."""
        self.agent = self.started()

    def started(self) -> Agent:
        """An agent that knows nothing yet, as after a restart."""
        self.agent = Agent(self.facts(), self.nominations)
        return self.agent

    def facts(self) -> NodeFacts:
        return NodeFacts(
            self.machine,
            CpuSet(),
            self.cgroups.get,
            lambda: {numa_node.id: numa_node.memory for numa_node in self.machine.numa_nodes},
            limited=lambda _cgroups_path, _pod: self.limited,
            pod_cgroup=lambda _cgroups_path, pod: pod in self.pod_cgroups,
        )

    def create(self, pod: nri.PodSandbox, container: nri.Container):
        adjust, updates = self.agent.create_container(pod, container)
        cpus, mems = self.machine.all_cpus, self.machine.all_mems
        if adjust is not None:
            cpu = adjust.linux.resources.cpu
            cpus = CpuSet.parse(cpu.cpus) or cpus
            mems = NumaSet.parse(cpu.mems) or mems
            container.annotations.update(adjust.annotations)
        self.cgroups[container.linux.cgroups_path] = (cpus, mems)
        self.apply(updates)
        return adjust

    def apply(self, updates) -> None:
        for update in updates:
            path = f"/kubepods/{update.container_id}"
            cpus, mems = self.cgroups[path]
            cpu = update.linux.resources.cpu
            self.cgroups[path] = (CpuSet.parse(cpu.cpus) or cpus, NumaSet.parse(cpu.mems) or mems)

    @property
    def last(self) -> pb.DecisionRecord:
        """The latest decision, as it would be reported."""
        records = self.agent.records.take()
        self._last = records[-1] if records else self._last
        return self._last

    def cpus(self, name: str) -> str:
        return str(self.cgroups[f"/kubepods/{name}"][0])

    def mems(self, name: str) -> str:
        return str(self.cgroups[f"/kubepods/{name}"][1])


@pytest.fixture
def world() -> World:
    return World()


def pod(name: str, **annotations: str) -> nri.PodSandbox:
    return nri.PodSandbox(
        id=f"sandbox-{name}",
        name=name,
        uid=f"uid-{name}",
        namespace="shop",
        annotations={
            key.replace("_", ".", 1) + ".numakin.io" if "." not in key else key: value
            for key, value in annotations.items()
        },
    )


def container(name: str, cpus: float = 1, memory: int = GIB) -> nri.Container:
    made = nri.Container(id=name, pod_sandbox_id=f"sandbox-{name}", name="app", state=nri.CONTAINER_RUNNING)
    made.linux.cgroups_path = f"/kubepods/{name}"
    made.linux.resources.cpu.shares.value = int(cpus * 1024)
    made.linux.resources.memory.limit.value = memory
    return made


def member(name: str, group: str = "web", **more: str) -> nri.PodSandbox:
    return pod(name, group=group, **more)


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
    asked.cpu.cpus = "5"
    assert world.agent.update_container(member("a"), mine, asked) == []
    assert world.agent.occupancy.allocations["a"].externally_managed
    assert str(world.agent.occupancy.allocations["a"].cpus) == "5"
    assert world.agent.records.counts["yielded"] == 1


def test_an_in_place_resize_changes_what_the_reservation_counts(world: World) -> None:
    mine = container("a", cpus=1)
    world.create(member("a"), mine)
    asked = nri.LinuxResources()
    asked.cpu.shares.value = 3 * 1024
    assert world.agent.update_container(member("a"), mine, asked) == []
    assert world.agent.occupancy.reservations["uid-a"].demand.cpu_milli == 3000


def test_exclusive_cpus_are_shared_with_nobody_and_come_back_at_stop(world: World) -> None:
    world.create(member("a"), container("a"))
    own = container("own", cpus=2)
    world.create(member("own", cpus="exclusive-cores"), own)
    assert CpuSet.parse(world.cpus("own")).isdisjoint(CpuSet.parse(world.cpus("a")))
    world.apply(world.agent.stop_container(member("own", cpus="exclusive-cores"), own))
    assert world.cpus("a") == "0-3,8-11"


def test_exclusive_cpus_are_given_beside_containers_that_somebody_else_pins(world: World) -> None:
    for name, cpus in (("everywhere", "0-15"), ("there", "4-7,12-15")):
        claimed = container(name, cpus=0)
        claimed.linux.resources.cpu.cpus = cpus
        world.agent.create_container(pod(name), claimed)
    world.create(member("own", cpus="exclusive"), container("own", cpus=2))
    assert len(CpuSet.parse(world.cpus("own"))) == 2


@pytest.mark.parametrize(
    ("claimed", "wanted", "given"),
    [("0-1", 6, "2-3,8-11"), ("0,8", 4, "1-2,9-10"), ("0-1,8", 6, "0-2,8-10"), ("0-2,8-10", 2, "0,8")],
    ids=["just enough is left", "whole cores are left", "too little is left", "a pool is no claim"],
)
def test_exclusive_cpus_are_those_that_nobody_else_pins_while_there_are_enough(
    world: World, claimed: str, wanted: int, given: str
) -> None:
    """They may be that container's alone, by the kubelet or by an enforcer before us that could not write it down."""
    theirs = container("theirs", cpus=0)
    theirs.linux.resources.cpu.cpus = claimed
    world.agent.create_container(pod("theirs"), theirs)
    world.create(member("filler", group="bank", cpus="exclusive"), container("filler", cpus=7))
    world.create(member("own", cpus="exclusive"), container("own", cpus=wanted))
    assert CpuSet.parse(world.cpus("filler")) <= world.machine.node(1).cpus
    assert world.cpus("own") == given


class TestIsolatedCpus:
    """Left to whoever asks for them by name, and given back with all others."""

    @pytest.fixture
    def world(self) -> World:
        return World(machines.ISOLATED)

    def test_who_has_them_by_another_owner_is_left_alone_and_takes_no_room_of_the_others(self, world: World) -> None:
        packet = container("packet", 3)
        packet.linux.resources.cpu.cpus = "5-7"
        world.create(pod("packet"), packet)
        assert world.agent.occupancy.allocations["packet"].externally_managed
        assert world.agent.occupancy.cpu_load(world.machine) == {0: 0, 1: 0}

    def test_a_member_that_has_some_is_somebody_elses(self, world: World) -> None:
        world.cgroups["/kubepods/a"] = (CpuSet.parse("5-6"), NumaSet.parse("0"))
        assert world.started().synchronize([member("a")], [container("a")]) == []
        assert world.agent.records.counts["yielded"] == 1

    @pytest.mark.parametrize("had", ["0-19", "0-4,8-19"], ids=["all", "all but the isolated ones"])
    def test_a_member_that_nobody_has_pinned_yet_is_pinned(self, world: World, had: str) -> None:
        world.cgroups["/kubepods/a"] = (CpuSet.parse(had), NumaSet.parse("0-1"))
        world.apply(world.started().synchronize([member("a")], [container("a")]))
        assert world.cpus("a") in {"0-4,8-9", "10-19"}

    def test_release_gives_them_back_with_the_others(self, world: World) -> None:
        """As a container runs that nobody pins."""
        world.create(member("a"), container("a"))
        world.apply(world.agent.release())
        assert (world.cpus("a"), world.mems("a")) == ("0-19", "0-1")


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


def test_the_room_of_an_ended_pod_is_free(world: World) -> None:
    mine = container("a", cpus=7)
    world.create(member("a"), mine)
    world.agent.stop_container(member("a"), mine)
    assert world.agent.occupancy.reservations
    world.agent.stop_pod_sandbox(member("a"))
    assert not world.agent.occupancy.reservations


def test_the_end_of_an_old_sandbox_leaves_the_pods_new_one_alone(world: World) -> None:
    """As when the pause process dies: the kubelet makes another sandbox for the same pod, and removes the first one
    minutes later.
    """
    first, mine = member("a"), container("a")
    world.create(first, mine)
    world.agent.stop_container(first, mine)
    world.agent.stop_pod_sandbox(first)
    second, again = member("a"), container("a2")
    second.id = again.pod_sandbox_id = "sandbox-a-again"
    world.create(second, again)
    world.agent.stop_pod_sandbox(first)
    assert "a2" in world.agent.occupancy.allocations
    assert world.agent.occupancy.reservations
    world.started().synchronize([first, second], [again])
    world.agent.stop_pod_sandbox(first)
    assert "a2" in world.agent.occupancy.allocations
    world.agent.stop_container(second, again)
    world.agent.stop_pod_sandbox(second)
    assert not world.agent.occupancy.reservations


class TestWithoutASandboxsEnd:
    """Which containerd does not tell of sandboxes that it recovered at its own start."""

    @pytest.fixture
    def mine(self, world: World) -> nri.Container:
        """Of a pod that was running when the runtime came back."""
        made = container("a")
        world.create(member("a"), made)
        world.pod_cgroups.add("uid-a")
        world.agent.synchronize([member("a")], [made])
        return made

    def test_the_room_is_free_when_the_last_container_is_removed_and_the_pods_cgroup_is_gone(
        self, world: World, mine
    ) -> None:
        world.agent.stop_container(member("a"), mine)
        world.pod_cgroups.clear()
        world.agent.remove_container(member("a"), mine)
        assert not world.agent.occupancy.reservations

    def test_or_when_that_is_seen_later(self, world: World, mine) -> None:
        world.agent.stop_container(member("a"), mine)
        world.agent.remove_container(member("a"), mine)
        world.agent.refresh()
        assert world.agent.occupancy.reservations, "the kubelet may start it again in its cgroup"
        world.pod_cgroups.clear()
        world.agent.refresh()
        assert not world.agent.occupancy.reservations

    def test_a_pod_whose_cgroup_was_never_seen_keeps_its_room(self, world: World) -> None:
        made = container("b")
        world.create(member("b"), made)
        world.agent.remove_container(member("b"), made)
        world.agent.refresh()
        assert world.agent.occupancy.reservations

    def test_a_pod_that_the_api_server_has_no_more_keeps_it_while_a_container_of_it_runs(
        self, world: World, mine
    ) -> None:
        world.agent.deleted(["uid-a", "uid-of-another-node"])
        world.agent.refresh()
        assert world.agent.occupancy.reservations
        world.agent.stop_container(member("a"), mine)
        world.agent.refresh()
        assert not world.agent.occupancy.reservations

    def test_a_pod_that_the_api_server_has_after_all_keeps_it(self, world: World, mine) -> None:
        world.agent.deleted(["uid-a"])
        world.agent.expect(pb.Expect(pod="uid-a"))
        world.agent.stop_container(member("a"), mine)
        world.agent.refresh()
        assert world.agent.occupancy.reservations


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


def learned(world: World, key: str, weights: dict[str, float]) -> None:
    """What the observer would hand over."""
    world.agent.ledger.learned.weighed(kin_table({key: weights}))


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


class TestNominations:
    """What the extender nominated is honoured while it fits, and each outcome is told."""

    def test_a_nomination_that_fits_is_kept(self, world: World) -> None:
        world.agent.expect(pb.Expect(pod="uid-a", numa_nodes="1"))
        world.create(member("a"), container("a"))
        assert world.mems("a") == "1"
        assert world.last.outcome == pb.KEPT

    def test_a_nomination_that_does_not_fit_any_more_is_declined_with_a_reason(self, world: World) -> None:
        world.agent.expect(pb.Expect(pod="uid-full", numa_nodes="1"))
        world.create(member("full"), container("full", cpus=8))
        world.agent.expect(pb.Expect(pod="uid-a", numa_nodes="1"))
        world.create(member("a"), container("a", cpus=2))
        assert world.mems("a") == "0"
        assert world.last.outcome == pb.DECLINED
        assert world.last.reasons

    def test_a_nomination_after_the_container_is_late(self, world: World) -> None:
        world.create(member("a"), container("a"))
        world.agent.expect(pb.Expect(pod="uid-a", numa_nodes="1"))
        assert world.last.outcome == pb.LATE
        assert world.mems("a") == "0"

    def test_the_same_nomination_of_another_replica_is_no_news(self, world: World) -> None:
        nomination = pb.Expect(pod="uid-a", numa_nodes="1")
        world.agent.expect(nomination)
        world.create(member("a"), container("a"))
        world.agent.expect(nomination)
        assert [entry.outcome for entry in world.agent.records.take()] == [pb.KEPT]

    def test_a_nomination_that_every_replica_makes_late_is_late_once(self, world: World) -> None:
        world.create(member("a"), container("a"))
        for _ in range(2):
            world.agent.expect(pb.Expect(pod="uid-a", numa_nodes="1"))
        assert [entry.outcome for entry in world.agent.records.take()] == [pb.UNPROMISED, pb.LATE]

    def test_a_replica_that_can_nomination_nothing_takes_nothing_away(self, world: World) -> None:
        world.agent.expect(pb.Expect(pod="uid-a", numa_nodes="1"))
        world.agent.expect(pb.Expect(pod="uid-a"))
        world.create(member("a"), container("a"))
        assert world.mems("a") == "1"
        assert world.last.outcome == pb.KEPT

    def test_true_requests_take_the_place_of_estimates(self, world: World) -> None:
        received = pb.Expect(pod="uid-a", pod_demand=pb.Demand(cpu_milli=500, memory=GIB // 2, memory_limit=GIB))
        received.containers.add(name="app", demand=received.pod_demand)
        world.agent.expect(received)
        world.create(member("a"), container("a", cpus=0.5))
        assert world.agent.occupancy.reservations["uid-a"].demand.memory == GIB // 2
        assert "estimated" not in {reason.what for reason in world.last.reasons}

    @pytest.mark.parametrize(
        ("own", "received", "cpus", "size"),
        [
            ({}, {"policy": "none"}, "0-15", 0),
            ({}, {"policy": "restricted", "size": 6}, "0-3,8-11", 6),
            ({"size": "3"}, {"policy": "best-effort", "size": 3}, "0-3,8-11", 3),
            ({"size": "3"}, {"policy": "of tomorrow"}, "0-3,8-11", 3),
        ],
    )
    def test_what_the_groups_object_says_is_obeyed(self, world: World, own, received, cpus, size) -> None:
        nomination = pb.Expect(pod="uid-a")
        nomination.containers.add(name="app", demand=pb.Demand(cpu_milli=500), **received)
        world.agent.expect(nomination)
        world.create(member("a", **own), container("a"))
        assert world.cpus("a") == cpus
        assert world.agent.occupancy.reservations["uid-a"].size == size

    def test_without_them_the_reasons_say_that_numbers_are_estimates(self, world: World) -> None:
        world.create(member("a"), container("a"))
        assert "estimated" in {reason.what for reason in world.last.reasons}


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


class TestWithoutNri:
    """What bypass mode asks of it besides."""

    def test_a_cpuset_that_somebody_else_wrote_makes_it_yield(self, world: World) -> None:
        world.create(member("a"), container("a"))
        assert world.agent.taken_over(member("a"), container("a"), Claim("5", "1")) == []
        assert world.agent.records.counts["yielded"] == 1
        allocation = world.agent.occupancy.allocations["a"]
        assert (str(allocation.cpus), allocation.externally_managed) == ("5", True)
        assert world.agent.release() == []

    def test_exclusive_cpus_that_the_kernel_refused_are_everybodys_again(self, world: World) -> None:
        world.create(member("a"), container("a"))
        world.create(member("b", cpus="exclusive"), container("b", cpus=2))
        shrunk = CpuSet.parse(world.cpus("a"))
        world.cgroups["/kubepods/b"] = (CpuSet(), NumaSet())
        world.apply(world.agent.refused(member("b"), container("b"), "no space left"))
        assert shrunk != CpuSet.parse(world.cpus("a"))
        assert shrunk <= CpuSet.parse(world.cpus("a"))
        assert world.agent.records.counts["refused"] == 1
        assert [reason.effect for reason in world.last.reasons] == ["no space left"]

    def test_what_is_to_be_said_beside_a_decision_is_among_its_reasons(self, world: World) -> None:
        world.agent.ledger.remark = lambda decision: (Reason("late", "", f"on {decision.mems}"),)
        world.create(member("a"), container("a"))
        assert [reason.effect for reason in world.last.reasons if reason.what == "late"] == ["on 0"]
