"""A container that the runtime lists nowhere yet at Synchronize, and asked nobody about: its start tells of it."""

import pytest

from enforcer.hook.ownership import checkpoint
from enforcer.hook.ownership.checkpoint import Wording
from numakin.placement.model.cpuset import CpuSet, NumaSet
from tests.enforcer.hook.world import GIB, World, container, member, pod
from tests.machines import machine


def starts(world: World, name: str, of=member, cpuset: tuple[CpuSet, NumaSet] | None = None) -> list:
    """Only now it is heard of: running, with this cpuset or the whole machine."""
    made = container(name)
    world.cgroups[made.linux.cgroups_path] = cpuset or (world.machine.all_cpus, world.machine.all_mems)
    updates = world.agent.post_start_container(of(name), made)
    world.apply(updates)
    return updates


def test_a_member_is_pinned_with_its_group(world: World) -> None:
    world.create(member("a"), container("a"))
    starts(world, "b")
    assert (world.cpus("b"), world.mems("b")) == (world.cpus("a"), world.mems("a"))
    assert (world.last.pod_name, world.last.event) == ("b", "synchronize")
    assert starts(world, "b", cpuset=world.cgroups["/kubepods/b"]) == [], "it is known by then"


def test_one_that_wants_cpus_of_its_own_gets_them_from_its_neighbours(world: World) -> None:
    world.create(member("a"), container("a"))
    starts(world, "own", lambda name: member(name, cpus="exclusive"))
    assert len(CpuSet.parse(world.cpus("own"))) == 1
    assert CpuSet.parse(world.cpus("own")).isdisjoint(CpuSet.parse(world.cpus("a")))


def test_another_owners_cpuset_is_respected(world: World) -> None:
    assert starts(world, "a", cpuset=(CpuSet.parse("2-3"), NumaSet.parse("0-1"))) == []
    assert world.agent.records.counts["yielded"] == 1


def test_one_that_has_not_opted_in_is_not_touched_and_takes_room(world: World) -> None:
    plain = container("plain", cpus=14)
    assert world.agent.post_start_container(pod("plain"), plain) == []
    world.create(member("a"), container("a", cpus=2))
    assert world.cpus("a") == "0-15", "no NUMA node has two CPUs left: the member is left open"


@pytest.mark.parametrize(("cpus", "homes"), [(3, {"0"}), (6, {"0", "1"})], ids=["together", "in parts"])
def test_a_pod_whose_containers_are_placed_one_by_one_is_found_as_it_was(world: World, cpus: int, homes: set) -> None:
    sandbox = member("a", scope="container")
    sandbox.linux.pod_resources.cpu.shares.value = 2 * cpus * 1024
    parts = [container(f"a-{name}", cpus) for name in ("one", "two")]
    for part in parts:
        part.name, part.pod_sandbox_id = part.id, sandbox.id
        world.create(sandbox, part)
    before = world.agent.occupancy
    assert {world.mems(part.id) for part in parts} == homes
    for again in (world.agent, world.started()):
        assert again.synchronize([sandbox], parts) == []
        assert again.occupancy.reservations == before.reservations
        assert again.occupancy.allocations == before.allocations


def test_while_the_node_is_released_nothing_is_pinned(world: World) -> None:
    world.agent.release()
    assert starts(world, "a") == []
    assert world.cpus("a") == "0-15"


def test_one_that_starts_pinned_after_a_release_is_given_the_whole_machine(world: World) -> None:
    """It was being created: the runtime listed it nowhere, and took no update for it."""
    made = container("a")
    world.agent.create_container(member("a"), made)
    for gone in (False, True):
        agent = world.started() if gone else world.agent
        agent.release()
        if gone:
            made.annotations["pinned.numakin.io"] = "cpus=0-3,8-11 mems=0 exclusive= homes=0"
        world.cgroups[made.linux.cgroups_path] = CpuSet.parse("0-3,8-11"), NumaSet.parse("0")
        world.apply(agent.post_start_container(member("a"), made))
        assert (world.cpus("a"), world.mems("a")) == ("0-15", "0-1")
        assert agent.post_start_container(member("a"), made) == []


def test_one_that_starts_with_bound_memory_after_a_release_is_given_all_of_it_though_it_has_all_cpus() -> None:
    world = World(machine("one NUMA node and a memory expander", ["0-7", ""], [16, 16]))
    sandbox, made = member("a", memory="bind"), container("a")
    world.create(sandbox, made)
    created = world.cgroups["/kubepods/a"]
    assert (world.cpus("a"), world.mems("a")) == ("0-7", "0")
    world.agent.release()
    world.cgroups["/kubepods/a"] = created
    world.start(sandbox, made)
    assert world.mems("a") == "0-1"
    assert world.agent.post_start_container(sandbox, made) == []


def test_one_that_starts_open_after_a_release_is_given_the_whole_machine_by_the_answer_that_brings_it(
    world: World,
) -> None:
    """It was being created. Such an answer has what is due by then."""
    world.create(member("own", cpus="exclusive"), container("own", 2))
    open_one, made = member("open"), container("open", 15)
    world.create(open_one, made)
    made.linux.resources.cpu.cpus = world.cpus("open")
    assert world.cpus("open") != "0-15"
    agent = world.started()
    agent.release()
    agent.moves.take_along(agent.post_start_container(open_one, made))
    world.apply(agent.moves.unsent_updates())
    assert world.cpus("open") == "0-15"


def test_another_owners_container_that_starts_after_a_release_keeps_its_cpuset(world: World) -> None:
    world.agent.release()
    assert starts(world, "a", cpuset=(CpuSet.parse("2-3"), NumaSet.parse("0-1"))) == []


def test_after_a_release_the_machine_is_as_full_as_before(world: World) -> None:
    """The extender would send it pods for which it has no room. One without a home takes room as the others do."""
    world.create(member("a"), container("a", cpus=5))
    world.create(member("open"), container("open", cpus=9, memory=64 * GIB))
    assert world.agent.occupancy.allocations["open"].open
    world.agent.release()
    occupancy = world.agent.occupancy
    assert sum(row.cpu for row in occupancy.load(world.machine).rows.values()) == 14_000
    assert not any(reservation.opted_in for reservation in occupancy.reservations.values())
    assert {key: allocation.reservation for key, allocation in occupancy.allocations.items()} == {
        "a": "a",
        "open": "open",
    }
    world.agent.stop_container(member("a"), container("a"))
    assert sum(row.cpu for row in world.agent.occupancy.load(world.machine).rows.values()) == 9_000
    world.create(member("later"), container("later", cpus=1))
    world.agent.stop_container(member("open"), container("open"))
    world.agent.stop_pod_sandbox(member("a"))
    assert set(world.agent.occupancy.allocations) == {"later"}


def test_what_a_released_member_had_is_known_until_the_runtime_lists_it(world: World) -> None:
    """A release that was not carried out before a restart is, after it."""
    world.create(member("a"), container("a"))
    before = world.cgroups["/kubepods/a"]
    world.agent.release()
    ledger = world.agent.ledger
    written = checkpoint.read(Wording().text(ledger.occupancy, ledger.past, released=True))
    assert world.cgroups["/kubepods/a"] == before
    world.started().takeover.remember(written)
    world.apply(world.agent.synchronize([member("a")], [container("a")]))
    assert world.cpus("a") == "0-15"


def test_who_is_found_bound_to_less_memory_than_it_may_use_has_it_opened() -> None:
    """It was moved where some memory had gone, and no process lived to write that down."""
    world = World(machine("four NUMA nodes", ["0-3", "4-7", "8-11", "12-15"], [8, 8, 8, 8]))
    made = container("a", memory=12 * GIB)
    world.create(member("a"), made)
    assert world.mems("a") == "0-1"
    beside = world.agent.ledger.beside
    text = Wording().text(world.agent.occupancy, checkpoint.Past(), released=False, beside=beside)
    world.cgroups[made.linux.cgroups_path] = CpuSet.parse("8-15"), NumaSet.parse("2")
    agent = world.started()
    agent.takeover.remember(checkpoint.read(text))
    world.apply(agent.synchronize([member("a")], [made]))
    assert (world.cpus("a"), world.mems("a")) == ("8-15", "0-3")
    assert agent.occupancy.allocations["a"].mems == NumaSet()
