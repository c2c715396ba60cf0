"""A running member's cpuset is written when its CPUs change, once, and never when they do not."""

from __future__ import annotations

from enforcer.hook.ownership import checkpoint
from numakin.wire import nri_pb2 as nri
from tests.enforcer.hook.world import World, container, member

OWN = {"cpus": "exclusive"}
STABLE = {"cpus": "shared-stable"}


def comes(world: World, name: str, count: float = 1, **more: str) -> list[nri.ContainerUpdate]:
    updates = world.agent.create_container(member(name, **more), container(name, count))[1]
    cpus = world.agent.occupancy.allocations[name].cpus
    world.cgroups[f"/kubepods/{name}"] = (cpus, world.machine.mems)
    world.apply(updates)
    return updates


def goes(world: World, name: str, **more: str) -> list[nri.ContainerUpdate]:
    updates = world.agent.stop_container(member(name, **more), container(name))
    world.apply(updates)
    return updates


def named(updates: list[nri.ContainerUpdate]) -> list[str]:
    return sorted(update.container_id for update in updates)


def test_an_exclusive_neighbour_that_comes_and_goes_has_each_member_of_its_numa_node_written_once_each_time(
    world: World,
) -> None:
    for name in ("a", "b", "stable"):
        comes(world, name, **(STABLE if name == "stable" else {}))
    comes(world, "far", group="far")
    assert str(world.agent.occupancy.reservations["uid-far"].numa_nodes) == "1"
    before = world.cpus("stable")
    assert named(comes(world, "own", 2, **OWN)) == ["a", "b"]
    assert named(comes(world, "c")) == []
    assert named(goes(world, "c")) == []
    assert named(goes(world, "own", **OWN)) == ["a", "b"]
    assert world.cpus("stable") == before


def test_a_restart_writes_nothing_where_nothing_changed(world: World) -> None:
    for name, keys in (("a", {}), ("stable", STABLE), ("own", OWN)):
        comes(world, name, **keys)
    text = checkpoint.Wording().text(world.agent.occupancy, checkpoint.Past(), released=False)
    agent = world.started()
    agent.takeover.remember(checkpoint.read(text))
    members = [member("a"), member("stable", **STABLE), member("own", **OWN)]
    assert agent.synchronize(members, [container(name) for name in ("a", "stable", "own")]) == []
    assert agent.occupancy.allocations["stable"].stable
    assert named(comes(world, "more", 2, **OWN)) == ["a"]


def test_a_stable_member_is_not_offered_for_moves(world: World) -> None:
    comes(world, "stable", **STABLE)
    assert world.agent.residents.now()["stable"].move == "never"
