"""Cgroups that are read back, and one that does not have what it was given."""

from __future__ import annotations

from tests.enforcer.hook.world import World, container, member


def read(world: World, times: int = 1) -> list[str]:
    """So many rounds; which containers are asked for once more."""
    again: list[str] = []
    for _ in range(times):
        world.agent.read_back.begin()
        while True:
            again += [update.container_id for update in world.agent.read_back.step()]
            if not world.agent.read_back.under_way:
                break
    return again


def with_one_stuck(world: World) -> World:
    """An exclusive member on CPUs that a neighbour could not be moved off: the kernel refused."""
    world.create(member("web"), container("web"))
    before = world.cgroups["/kubepods/web"]
    world.create(member("own", cpus="exclusive"), container("own", cpus=2))
    world.cgroups["/kubepods/web"] = before
    return world
