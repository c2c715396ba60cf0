"""What a member asks for now: at its start, after an in-place resize, with and without the extender's word."""

from __future__ import annotations

import pytest

from numakin.placement.model.demand import Demand
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.world import GIB, World, container, member, pod

MIB = 1 << 20


def part(name: str, of: str = "a", cpus: float = 1, memory: int = GIB) -> nri.Container:
    """One container of pod `of`, with a memory limit where `memory` is not 0."""
    made = container(f"{of}-{name}", cpus, memory)
    made.name, made.pod_sandbox_id = name, f"sandbox-{of}"
    if not memory:
        made.linux.resources.memory.ClearField("limit")
    return made


def sandboxed(cpus: float, memory: int, /, **more: str) -> nri.PodSandbox:
    """A member's sandbox as the kubelet makes it: with the sums of the requests and limits that are set, for good."""
    made = member("a", **more)
    made.linux.pod_resources.cpu.shares.value = int(cpus * 1024)
    if memory:
        made.linux.pod_resources.memory.limit.value = memory
    return made


def resized(world: World, of: nri.PodSandbox, first: nri.Container, cpus: float, memory: int = 0) -> None:
    """As the kubelet does it: shares, quota and limit of the one container; its request shows what was before."""
    asked = nri.LinuxResources()
    asked.cpu.shares.value = int(cpus * 1024)
    if memory:
        asked.memory.limit.value = memory
    assert world.agent.update_container(of, first, asked) == []
    first.linux.resources.MergeFrom(asked)


def told(*parts: tuple[str, int, int, int | None], whole: pb.Demand | None = None, **more) -> pb.Expect:
    """The extender's word. parts: name, millicores, memory, memory limit."""
    demands = [pb.Demand(cpu_milli=cpu, memory=memory, memory_limit=limit) for _, cpu, memory, limit in parts]
    limits = [limit for *_, limit in parts]
    summed = pb.Demand(
        cpu_milli=sum(entry.cpu_milli for entry in demands),
        memory=sum(entry.memory for entry in demands),
        memory_limit=None if None in limits else sum(limits),
    )
    made = pb.Expect(pod="uid-a", pod_demand=whole or summed, **more)
    for (name, *_), demand in zip(parts, demands, strict=True):
        made.containers.add(name=name, demand=demand)
    return made


def reservation(world: World) -> Demand:
    return world.agent.occupancy.reservations["uid-a"].demand


class TestInPlaceResize:
    """Requests and limits of now count: the runtime's word goes before an older nomination."""

    def test_of_a_nominated_pod(self, world: World) -> None:
        first = part("app")
        world.agent.expect(told(("app", 1000, GIB, GIB), numa_nodes="1"))
        world.create(sandboxed(1, GIB), first)
        resized(world, sandboxed(1, GIB), first, cpus=3, memory=2 * GIB)
        assert (reservation(world).cpu_milli, reservation(world).memory, reservation(world).memory_limit) == (
            3000,
            2 * GIB,
            2 * GIB,
        )

    @pytest.mark.parametrize("nominated", [True, False])
    def test_of_one_container_among_several(self, world: World, nominated) -> None:
        of, first, other = sandboxed(2, 2 * GIB), part("app"), part("side")
        if nominated:
            world.agent.expect(told(("app", 1000, GIB, GIB), ("side", 1000, GIB, GIB)))
        for each in (first, other):
            world.create(of, each)
        assert reservation(world).cpu_milli == 2000
        resized(world, of, first, cpus=3)
        assert reservation(world).cpu_milli == 4000
        resized(world, of, other, cpus=2, memory=3 * GIB)
        assert (reservation(world).cpu_milli, reservation(world).memory_limit) == (5000, 4 * GIB)
        resized(world, of, first, cpus=0.5)
        assert reservation(world).cpu_milli == 2500

    def test_of_a_container_that_starts_before_the_others(self, world: World) -> None:
        of, first = sandboxed(2, 2 * GIB), part("app")
        world.create(of, first)
        resized(world, of, first, cpus=3)
        assert reservation(world).cpu_milli == 4000, "the other one's CPU is still to come"

    def test_the_request_of_memory_that_nobody_sees_here_stays_below_the_limit(self, world: World) -> None:
        first = part("app")
        world.agent.expect(told(("app", 1000, GIB // 2, GIB)))
        world.create(sandboxed(1, GIB), first)
        resized(world, sandboxed(1, GIB), first, cpus=1, memory=2 * GIB)
        assert (reservation(world).memory, reservation(world).memory_limit) == (GIB // 2, 2 * GIB)
        resized(world, sandboxed(1, GIB), first, cpus=1, memory=GIB // 4)
        assert (reservation(world).memory, reservation(world).memory_limit) == (GIB // 4, GIB // 4)

    def test_a_newer_word_of_the_extender_counts(self, world: World) -> None:
        world.agent.expect(told(("app", 1000, GIB // 2, GIB), numa_nodes="1"))
        world.create(sandboxed(1, GIB), part("app"))
        world.agent.expect(told(("app", 1000, GIB // 4, GIB)))
        assert reservation(world).memory == GIB // 4
        assert [entry.outcome for entry in world.agent.records.take()] == [pb.KEPT]

    def test_an_older_word_that_comes_late_takes_nothing_back(self, world: World) -> None:
        of, first = sandboxed(1, GIB), part("app")
        world.create(of, first)
        resized(world, of, first, cpus=3)
        world.agent.expect(told(("app", 1000, GIB, GIB)))
        assert reservation(world).cpu_milli == 3000

    def test_what_the_pod_itself_asks_for_stays(self, world: World) -> None:
        """Pod-level resources: the containers share them, however these are resized."""
        first, whole = part("app"), pb.Demand(cpu_milli=4000, memory=4 * GIB, memory_limit=4 * GIB)
        world.agent.expect(told(("app", 1000, GIB, GIB), whole=whole))
        world.create(sandboxed(4, 4 * GIB), first)
        resized(world, sandboxed(4, 4 * GIB), first, cpus=2)
        assert reservation(world).cpu_milli == 4000

    def test_an_init_container_that_asked_for_more_still_counts(self, world: World) -> None:
        nomination = told(("first", 4000, GIB, GIB), ("app", 1000, GIB, GIB))
        nomination.containers[0].init = True
        nomination.pod_demand.CopyFrom(pb.Demand(cpu_milli=4000, memory=GIB, memory_limit=GIB))
        first = part("app")
        world.agent.expect(nomination)
        world.create(sandboxed(4, GIB), first)
        resized(world, sandboxed(4, GIB), first, cpus=2)
        assert reservation(world).cpu_milli == 4000
        resized(world, sandboxed(4, GIB), first, cpus=5)
        assert reservation(world).cpu_milli == 5000

    def test_of_a_container_that_has_not_opted_in(self, world: World) -> None:
        first = container("plain", cpus=1)
        world.agent.create_container(pod("plain"), first)
        resized(world, pod("plain"), first, cpus=9)
        assert world.agent.occupancy.reservations["plain"].demand.cpu_milli == 9000

    def test_it_outlives_a_restart_of_the_enforcer(self, world: World) -> None:
        of, first, other = sandboxed(2, 2 * GIB), part("app"), part("side")
        for each in (first, other):
            world.create(of, each)
        resized(world, of, first, cpus=3)
        world.started().synchronize([of], [first, other])
        assert reservation(world).cpu_milli == 4000

    def test_a_new_sandbox_is_counted_anew(self, world: World) -> None:
        of, first = sandboxed(1, GIB), part("app")
        world.create(of, first)
        resized(world, of, first, cpus=3)
        world.agent.stop_container(of, first)
        again, later = sandboxed(3, GIB), part("app", cpus=3)
        again.id, later.id = "sandbox-a2", "a-app2"
        world.create(again, later)
        assert reservation(world).cpu_milli == 3000


class TestBoundMemory:
    """A member that was bound and may use more than its NUMA node has, is bound no more: the kernel would kill it."""

    def grown(self, world: World, limit: int, **keys: str) -> list[nri.ContainerUpdate]:
        of, parts = sandboxed(2, 2 * GIB, **keys), [part("app"), part("side")]
        for entry in parts:
            world.create(of, entry)
        assert world.mems("a-app") == "0"
        asked = nri.LinuxResources()
        asked.memory.limit.value = limit
        return world.agent.update_container(of, parts[0], asked)

    def test_all_its_containers_get_the_memory_of_the_machine(self, world: World) -> None:
        world.apply(self.grown(world, 20 * GIB))
        assert {world.mems(name) for name in ("a-app", "a-side")} == {"0-1"}
        assert {str(allocation.mems) for allocation in world.agent.occupancy.allocations.values()} == {""}
        assert world.cpus("a-app") == "0-3,8-11"

    def test_while_it_is_covered_it_stays_bound(self, world: World) -> None:
        assert self.grown(world, 8 * GIB) == []

    def test_one_that_wants_to_be_bound_stays_so_while_its_request_is_covered(self, world: World) -> None:
        assert self.grown(world, 8 * GIB, memory="bind") == []


class TestMissingLimit:
    """A missing limit is no limit: such a pod's memory is not bound where nobody else tells of it."""

    @pytest.mark.parametrize("order", [("limited", "open"), ("open", "limited")])
    def test_a_partly_limited_pod_is_not_bound(self, world: World, order) -> None:
        world.limited = False
        parts = {"limited": part("limited", memory=8 * MIB), "open": part("open", memory=0)}
        for name in order:
            world.create(sandboxed(2, 8 * MIB), parts[name])
        assert {world.mems("a-limited"), world.mems("a-open")} == {"0-1"}
        assert reservation(world).memory_limit is None
        assert "none, so a binding could kill" in str([reason.effect for reason in world.last.reasons])

    def test_nor_is_one_whose_other_containers_are_not_known(self, world: World) -> None:
        world.limited = None
        world.create(sandboxed(1, GIB), part("app"))
        assert world.mems("a-app") == "0-1"
        assert "not known of every container" in str([reason.effect for reason in world.last.reasons])

    def test_one_whose_every_container_is_limited_is_bound_from_its_first_on(self, world: World) -> None:
        world.create(sandboxed(2, 2 * GIB), part("app"))
        assert world.mems("a-app") == "0"
        assert reservation(world).memory_limit == 2 * GIB

    def test_what_the_extender_tells_needs_no_look(self, world: World) -> None:
        world.limited = None
        world.agent.expect(told(("app", 1000, GIB, GIB)))
        world.create(sandboxed(1, GIB), part("app"))
        assert world.mems("a-app") == "0"

    def test_a_container_that_is_placed_by_itself_has_its_own_limit(self, world: World) -> None:
        world.limited = False
        larger_than_a_numa_node = sandboxed(9, GIB, scope="container")
        world.create(larger_than_a_numa_node, part("app"))
        assert world.mems("a-app") == "0"


class TestFactsAfterARestart:
    """The extender tells the facts of members that are there already: no nomination, and nothing comes late."""

    FACTS = told(("app", 1000, 256 * MIB, None), ("side", 500, 8 * MIB, 8 * MIB), workload="shop/CloneSet/web")

    @pytest.fixture
    def running(self, world: World) -> World:
        of, parts = sandboxed(1.5, 8 * MIB), [part("app", memory=0), part("side", cpus=0.5, memory=8 * MIB)]
        for entry in parts:
            world.create(of, entry)
        world.agent.records.take()
        return world

    def test_bring_the_true_requests(self, running: World) -> None:
        assert reservation(running).memory == 8 * MIB
        running.agent.expect(self.FACTS)
        assert reservation(running) == Demand(cpu_milli=1500, memory=264 * MIB, memory_limit=None)
        assert {request.pod_demand.memory for request in running.agent.ledger.requests.values()} == {264 * MIB}

    def test_bring_the_workload_for_both_processes(self, running: World) -> None:
        before = {entry.workload for entry in running.agent.residents.now().values()}
        running.agent.expect(self.FACTS)
        assert before == {"shop/Pod/a"}
        assert {entry.workload for entry in running.agent.residents.now().values()} == {"shop/CloneSet/web"}
        assert running.agent.occupancy.reservations["uid-a"].workload == "shop/CloneSet/web"

    def test_are_no_late_nomination(self, running: World) -> None:
        running.agent.expect(self.FACTS)
        assert running.agent.records.counts["late"] == 0
        assert running.agent.records.take() == []

    def test_leave_what_was_nominated(self, world: World) -> None:
        world.agent.expect(pb.Expect(pod="uid-a", numa_nodes="1", kin=[pb.KinWeight(pod="uid-b", weight=1)]))
        world.agent.expect(self.FACTS)
        kin = world.nominations.kin("uid-a")
        assert kin is not None
        assert (str(kin.expected), dict(kin.weights)) == ("1", {"uid-b": 1.0})

    def test_alone_are_no_kin(self, world: World) -> None:
        world.agent.expect(self.FACTS)
        assert world.nominations.kin("uid-a") is None
