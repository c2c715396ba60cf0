"""Exclusive CPUs, and those that the kernel isolates, on a node with other owners."""

from dataclasses import replace

import pytest

from enforcer.hook.agent import Agent
from enforcer.hook.ownership.checkpoint import Past
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.rules import Rules
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests import machines
from tests.enforcer.hook.world import World, container, member, pod


def test_exclusive_cpus_are_shared_with_nobody_and_come_back_at_stop(world: World) -> None:
    world.create(member("a"), container("a"))
    own = container("own", cpus=2)
    world.create(member("own", cpus="exclusive-cores"), own)
    assert CpuSet.parse(world.cpus("own")).isdisjoint(CpuSet.parse(world.cpus("a")))
    world.apply(world.agent.stop_container(member("own", cpus="exclusive-cores"), own))
    assert world.cpus("a") == "0-3,8-11"


class TestRoundedUp:
    """Beside a container of 3 CPUs in whole cores another one of its pod asks for 1."""

    SANDBOX = member("a", cpus="exclusive-cores", **{"cpus.numakin.io/container.side": "shared"})

    @pytest.fixture
    def main(self, world: World) -> nri.Container:
        main = container("a", cpus=3)
        world.create(self.SANDBOX, main)
        world.create(self.SANDBOX, self.side())
        return main

    def side(self) -> nri.Container:
        made = container("a-side")
        made.name, made.pod_sandbox_id = "side", self.SANDBOX.id
        return made

    def load(self, world: World) -> int:
        return sum(world.agent.occupancy.cpu_load(world.machine).values())

    def test_both_count(self, world: World, main: nri.Container) -> None:
        assert (len(CpuSet.parse(world.cpus("a"))), self.load(world)) == (4, 5000)

    @pytest.mark.parametrize(("cpus", "load"), [(3.5, 5000), (4, 5000), (5, 7000)])
    def test_after_a_resize(self, world: World, main: nri.Container, cpus: float, load: int) -> None:
        world.apply(world.agent.update_container(self.SANDBOX, main, container("a", cpus).linux.resources))
        assert self.load(world) == load

    def test_after_a_restart(self, world: World, main: nri.Container) -> None:
        past = Past().with_those_of(world.agent.occupancy)
        world.started().takeover.remember(past)
        assert world.agent.synchronize([self.SANDBOX], [main, self.side()]) == []
        assert self.load(world) == 5000

    def test_when_the_container_ends(self, world: World, main: nri.Container) -> None:
        """Its pod's room is kept for it, as it was asked for."""
        world.apply(world.agent.stop_container(self.SANDBOX, main))
        assert self.load(world) == 4000


def test_of_an_init_container_only_what_is_more_than_the_pods_whole_demand_is_taken(world: World) -> None:
    """It is gone before the pod is up, as the extender knows, which has its spec."""
    sandbox, asks = member("a", cpus="exclusive-cores"), container("a", cpus=3)
    told = pb.Expect(pod=sandbox.uid, pod_demand=pb.Demand(cpu_milli=4000))
    told.containers.add(name="app", init=True, demand=pb.Demand(cpu_milli=3000))
    world.agent.expect(told)
    world.create(sandbox, asks)
    assert len(CpuSet.parse(world.cpus("a"))) == 4
    assert sum(world.agent.occupancy.cpu_load(world.machine).values()) == 4000


def test_more_exclusive_cpus_than_shares_can_say_are_as_many_as_the_limit_says() -> None:
    world = World(machines.machine("two NUMA nodes", ["0-511", "512-1023"], [512, 512]))
    asks = container("own", cpus=256)  # the most that shares say
    asks.linux.resources.cpu.period.value, asks.linux.resources.cpu.quota.value = 100_000, 700 * 100_000
    world.create(member("own", cpus="exclusive"), asks)
    assert len(world.cgroups["/kubepods/own"][0]) == 700


def test_exclusive_cpus_are_given_beside_containers_that_somebody_else_pins(world: World) -> None:
    for name, cpus in (("everywhere", "0-15"), ("there", "4-7,12-15")):
        claimed = container(name, cpus=0)
        claimed.linux.resources.cpu.cpus = cpus
        world.agent.create_container(pod(name), claimed)
    world.create(member("own", cpus="exclusive"), container("own", cpus=2))
    assert len(CpuSet.parse(world.cpus("own"))) == 2


def resources(cpus: str) -> nri.LinuxResources:
    return nri.LinuxResources(cpu=nri.LinuxCPU(cpus=cpus))


class TestEveryoneKeepsOff:
    """By the operator's rule (`--shared-pool all`)."""

    @pytest.fixture
    def world(self) -> World:
        made = World()
        made.agent = Agent(replace(made.facts(), rules=Rules(everyone=True)), made.nominations)
        made.create(member("own", cpus="exclusive"), container("own", cpus=2))
        return made

    def test_a_container_that_comes_later_starts_off_exclusive_cpus(self, world: World) -> None:
        adjust = world.create(pod("plain"), container("plain"))
        rest = world.machine.cpus - CpuSet.parse(world.cpus("own"))
        assert (world.cpus("plain"), dict(adjust.annotations)) == (str(rest), {})
        world.apply(world.agent.stop_container(member("own", cpus="exclusive"), container("own")))
        assert world.cpus("plain") == str(world.machine.cpus)

    @pytest.mark.parametrize(
        "named", ["4-7", "2-15", "0-7,9-15"], ids=["narrow", "most of it", "all but what is taken"]
    )
    def test_one_whose_cpus_somebody_else_names_is_left_there(self, world: World, named: str) -> None:
        """By the kubelet's static policy, or another plugin: it would be widened."""
        theirs = container("theirs")
        theirs.linux.resources.cpu.cpus = named
        assert world.create(pod("theirs"), theirs) is None
        assert world.agent.ledger.settle() == []
        assert world.agent.occupancy.allocations["theirs"].externally_managed
        assert world.agent.stop_container(member("own", cpus="exclusive"), container("own")) == []

    def test_one_whose_cpus_somebody_else_names_later_is_left_there_from_then_on(self, world: World) -> None:
        world.create(pod("plain"), container("plain"))
        assert world.agent.update_container(pod("plain"), container("plain"), resources("4-7")) == []
        assert world.agent.stop_container(member("own", cpus="exclusive"), container("own")) == []

    def test_exclusive_cpus_are_not_those_that_somebody_else_named(self, world: World) -> None:
        theirs = container("theirs", cpus=0)
        theirs.linux.resources.cpu.cpus = "1,9"
        world.create(pod("theirs"), theirs)
        world.create(member("filler", group="bank", cpus="exclusive"), container("filler", cpus=7))
        world.create(member("more", cpus="exclusive"), container("more", cpus=4))
        assert world.cpus("more") == "2-3,10-11"

    def test_what_an_earlier_process_kept_off_gets_its_cpus_back(self, world: World) -> None:
        """Its exclusive neighbour ended meanwhile."""
        plain = container("plain")
        world.create(pod("plain"), plain)
        plain.linux.resources.cpu.cpus = world.cpus("plain")
        past = Past().with_those_of(world.agent.occupancy)
        world.agent = Agent(replace(world.facts(), rules=Rules(everyone=True)), world.nominations)
        world.agent.takeover.remember(past)
        world.apply(world.agent.synchronize([pod("plain")], [plain]))
        assert world.cpus("plain") == str(world.machine.cpus)

    def test_one_that_runs_on_them_is_moved_off(self, world: World) -> None:
        """As at Synchronize, where each CPU of the machine may be named."""
        theirs = container("theirs")
        theirs.linux.resources.cpu.cpus = str(world.machine.cpus)
        world.create(pod("theirs"), theirs)
        world.apply(world.agent.ledger.settle())
        assert CpuSet.parse(world.cpus("theirs")).isdisjoint(CpuSet.parse(world.cpus("own")))

    @pytest.mark.parametrize("comes", ["created", "its creation was missed"])
    def test_what_another_owner_gave_a_member_while_the_node_was_released_is_never_widened(
        self, world: World, comes: str
    ) -> None:
        """A runtime that launched us can't have us register again: no Synchronize comes with `resume`."""
        world.agent.release()
        theirs = container("theirs")
        theirs.linux.resources.cpu.cpus = "0-3,8-11"
        world.cgroups["/kubepods/theirs"] = CpuSet.parse("0-3,8-11"), world.machine.mems
        if comes == "created":
            assert world.agent.create_container(member("theirs"), theirs) == (None, [])
        else:
            assert world.agent.post_start_container(member("theirs"), theirs) == []
        world.agent.resume()
        for name in ("own", "too"):
            world.create(member(name, group=name, cpus="exclusive"), container(name))
        assert world.cpus("theirs") == "0-3,8-11"
        assert world.agent.occupancy.allocations["theirs"].externally_managed

    def test_without_exclusive_cpus_nobody_is_touched(self) -> None:
        world = World()
        world.agent = Agent(replace(world.facts(), rules=Rules(everyone=True)), world.nominations)
        assert world.create(pod("plain"), container("plain")) is None


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

    @pytest.mark.parametrize(("asks", "cpus", "load"), [(3, "5-7", 0), (5, "", 2000), (3, "8-9", 3000)])
    def test_they_stay_no_others_when_their_container_is_resized_or_moved(
        self, world: World, asks: int, cpus: str, load: int
    ) -> None:
        packet = container("packet", 3)
        packet.linux.resources.cpu.cpus = "5-7"
        world.create(pod("packet"), packet)
        asked = container("packet", asks).linux.resources
        asked.cpu.cpus = cpus
        world.agent.update_container(pod("packet"), packet, asked)
        assert world.agent.occupancy.cpu_load(world.machine) == {0: load, 1: 0}

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
