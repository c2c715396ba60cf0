"""What a container's cgroup really has is looked at, and told where it is not what was given."""

from __future__ import annotations

import pytest

from enforcer.hook.facts import pods
from numakin.placement.model.cpuset import CpuSet, NumaSet
from tests.enforcer.hook.reading_back import read, with_one_stuck
from tests.enforcer.hook.world import GIB, World, container, member, pod

WIDE = CpuSet.parse("0-15"), NumaSet.parse("0-1")


def reasons(world: World, name: str) -> dict[str, str]:
    return {reason.what: reason.effect for reason in world.agent.records.latest()[name].reasons}


@pytest.fixture
def stuck(world: World) -> World:
    return with_one_stuck(world)


def test_what_is_as_it_was_given_is_not_touched(world: World) -> None:
    world.create(member("web"), container("web"))
    world.create(member("own", cpus="exclusive"), container("own", cpus=2))
    assert read(world, 5) == []
    assert world.agent.records.counts["differs"] == 0
    assert "differs" not in reasons(world, "web")


def test_what_has_not_opted_in_is_not_ours_to_ask_for(world: World) -> None:
    """Its owner has changed its cpuset: another one's exclusive CPUs, which it may run on, were taken off it."""
    world.create(pod("plain"), container("plain"))
    world.create(member("own", cpus="exclusive"), container("own", cpus=2))
    own = world.agent.occupancy.allocations["own"].exclusive
    written = container("plain").linux.resources
    written.cpu.cpus = f"{own},15"
    assert world.agent.update_container(pod("plain"), container("plain"), written) == []
    world.cgroups["/kubepods/plain"] = CpuSet.parse(written.cpu.cpus), NumaSet.parse("0-1")
    assert read(world, 5) == []
    assert world.agent.records.counts["differs"] == 0


def test_an_update_that_was_lost_is_asked_for_once_more(stuck: World) -> None:
    assert read(stuck) == [], "its answer may be under way"
    assert read(stuck) == ["web"]
    stuck.cgroups["/kubepods/web"] = stuck.agent.occupancy.allocations["web"].cpus, NumaSet.parse("0")
    assert read(stuck, 5) == []
    assert stuck.agent.records.counts["differs"] == 0


def test_a_fault_over_one_costs_no_other(stuck: World) -> None:
    """As of a kernel whose files say what we can't read."""
    stuck.create(member("odd"), container("odd"))
    stuck.cgroups["/kubepods/odd"] = 0
    asked, faults = [], 0
    for _ in range(2):
        stuck.agent.read_back.begin()
        while stuck.agent.read_back.under_way:
            try:
                asked += [update.container_id for update in stuck.agent.read_back.step()]
            except TypeError:
                faults += 1
    assert (asked, faults) == (["web"], 2)


def test_so_is_the_opening_of_memory(world: World) -> None:
    """The kernel would kill it where it is bound."""
    world.create(member("web", memory="bind"), container("web"))
    wanted = container("web", memory=20 * GIB)
    world.agent.update_container(member("web", memory="bind"), container("web"), wanted.linux.resources)
    assert read(world) == []
    world.agent.read_back.begin()
    world.apply(world.agent.read_back.step())
    assert world.mems("web") == "0-1"
    assert read(world, 5) == []
    assert world.agent.records.counts["differs"] == 0


def test_memory_that_is_open_is_no_difference_where_the_cgroup_above_has_no_more(world: World) -> None:
    """As cgroups of version 1 name all that the one above them has."""
    world.create(member("web", memory="prefer"), container("web"))
    world.cgroups["/kubepods/web"] = CpuSet.parse("0-3,8-11"), NumaSet.parse("0")
    world.widest = CpuSet.parse("0-15"), NumaSet.parse("0")
    assert read(world, 5) == []
    assert world.agent.records.counts["differs"] == 0


def test_one_that_the_runtime_has_not_been_asked_for_yet_was_not_refused(stuck: World) -> None:
    held = stuck.agent.occupancy.allocations["web"]
    stuck.agent.moves.take_along([pods.update("web", held.cpus, held.mems)])
    assert read(stuck, 9) == []
    assert stuck.agent.records.counts["differs"] == 0
    stuck.agent.moves.unsent_updates()  # an answer took them along
    assert read(stuck, 9) == ["web"]
    assert stuck.agent.records.counts["differs"] == 1


def test_nor_is_it_called_refused_while_what_was_asked_for_once_more_waits(stuck: World) -> None:
    held = stuck.agent.occupancy.allocations["web"]
    assert read(stuck, 2) == ["web"]
    stuck.agent.moves.take_along([pods.update("web", held.cpus, held.mems)])
    assert read(stuck, 9) == []
    assert stuck.agent.records.counts["differs"] == 0
    stuck.agent.moves.unsent_updates()
    read(stuck)
    assert stuck.agent.records.counts["differs"] == 1


def test_what_it_was_called_before_is_not_said_of_what_waits(stuck: World) -> None:
    """It is asked for other CPUs by now, and gets them."""
    read(stuck, 5)
    assert "differs" in reasons(stuck, "web")
    stuck.create(member("next", cpus="exclusive"), container("next", cpus=2))
    stuck.cgroups["/kubepods/web"] = WIDE
    held = stuck.agent.occupancy.allocations["web"]
    stuck.agent.moves.take_along([pods.update("web", held.cpus, held.mems)])
    read(stuck)
    assert "differs" not in reasons(stuck, "web")
    stuck.apply(stuck.agent.moves.unsent_updates())
    read(stuck)
    assert "differs" not in reasons(stuck, "web")


def test_exclusive_cpus_that_another_one_still_has_are_not_called_exclusive(stuck: World) -> None:
    own = stuck.agent.occupancy.allocations["own"].exclusive
    assert reasons(stuck, "own")["exclusive CPUs"] == f"CPUs {own} are shared with nobody, 1 containers leave them"
    assert read(stuck, 5) == ["web"], "asked once, not each time"
    said = reasons(stuck, "own")["exclusive CPUs"]
    assert said == f"CPUs {own} are NOT its own alone: shop/web app could not be moved off them"
    assert "its cgroup has CPUs 0-3,8-11, memory 0, and not CPUs" in reasons(stuck, "web")["differs"]
    assert stuck.agent.records.counts["differs"] == 1
    again = [record.container for record in stuck.agent.records.take() if "NOT" in str(record)]
    assert again == ["own"], "the extender is told, too"


def test_once_it_is_moved_off_them_they_are_called_so_again(stuck: World) -> None:
    own = stuck.agent.occupancy.allocations["own"].exclusive
    read(stuck, 5)
    stuck.cgroups["/kubepods/web"] = stuck.agent.occupancy.allocations["web"].cpus, NumaSet.parse("0")
    read(stuck)
    assert reasons(stuck, "own")["exclusive CPUs"] == f"CPUs {own} are shared with nobody"
    assert "differs" not in reasons(stuck, "web")


def test_one_that_ends_takes_nothing_from_them_any_more(stuck: World) -> None:
    read(stuck, 5)
    stuck.agent.stop_container(member("web"), container("web"))
    read(stuck)
    assert "shared with nobody" in reasons(stuck, "own")["exclusive CPUs"]


def test_another_owners_new_cpuset_is_told_and_not_fought_over(world: World) -> None:
    world.create(member("web"), container("web"))
    world.cgroups["/kubepods/web"] = CpuSet.parse("2"), NumaSet.parse("0")
    assert read(world, 9) == ["web"]
    assert "another owner has written it since" in reasons(world, "web")["differs"]


def test_what_can_not_be_read_is_no_difference(world: World) -> None:
    world.create(member("web"), container("web"))
    del world.cgroups["/kubepods/web"]
    assert read(world, 5) == []


def test_many_are_read_a_few_at_a_time(world: World) -> None:
    for number in range(40):
        world.create(member(f"m{number}", group=f"g{number}"), container(f"m{number}", cpus=0.1, memory=1 << 20))
    world.agent.read_back.begin()
    steps = 1
    while world.agent.read_back.step() or world.agent.read_back.under_way:
        steps += 1
    assert steps == 3


def test_of_a_failure_that_names_nobody_the_cgroups_say_who_it_was(world: World) -> None:
    for name in ("done", "not", "gone"):
        world.create(member(name), container(name))
    updates = [pods.update(name, CpuSet.parse("2"), NumaSet()) for name in ("done", "not", "gone")]
    world.apply(updates[:1])
    del world.cgroups["/kubepods/gone"]
    assert world.agent.read_back.not_carried_out(updates) == ["not", "gone"]


def test_while_the_node_is_released_nothing_is_compared(stuck: World) -> None:
    stuck.agent.release()
    assert read(stuck, 5) == []


class TestMemoryPolicy:
    @pytest.fixture
    def asked(self, world: World) -> World:
        """A member that asks for a policy, by a runtime that takes it."""
        world.agent.memory_policies = True
        world.create(member("web", memory="prefer"), container("web"))
        return world

    def starts(self, world: World, policy: str | None) -> None:
        world.policies[17] = policy
        running = container("web")
        running.pid = 17
        world.agent.start_container(member("web"), running)
        world.agent.post_start_container(member("web"), running)
        read(world)

    @pytest.mark.parametrize("found", ["prefer:0", None], ids=["it is in force", "it can't be read"])
    def test_nothing_is_said_unless_it_is_missing(self, asked: World, found: str | None) -> None:
        self.starts(asked, found)
        assert asked.agent.records.counts["memory policy not applied"] == 0

    def test_one_that_the_oci_runtime_left_out_is_told(self, asked: World) -> None:
        self.starts(asked, "default")
        assert asked.agent.records.counts["memory policy not applied"] == 1
        assert "was asked for and is not in force" in reasons(asked, "web")["memory policy"]
        asked.policies[17] = "prefer:0"
        read(asked)
        assert asked.agent.records.counts["memory policy not applied"] == 1, "looked at once"

    @pytest.mark.parametrize("takes", [False, True], ids=["an older kernel", "one that knows it"])
    def test_none_is_asked_for_that_the_kernel_would_refuse(self, world: World, *, takes: bool) -> None:
        """The OCI runtime would fail the start of each container without a memory limit."""
        world.takes_policies = takes
        world.started().memory_policies = True
        adjust = world.create(member("web"), container("web", memory=0))
        assert world.cpus("web") == "0-3,8-11"
        assert adjust.linux.HasField("memory_policy") == takes
        self.starts(world, "default")
        assert world.agent.records.counts["memory policy not applied"] == takes

    def test_a_runtime_that_takes_none_is_not_looked_after(self, world: World) -> None:
        world.create(member("web", memory="prefer"), container("web"))
        self.starts(world, "default")
        assert world.agent.records.counts["memory policy not applied"] == 0
