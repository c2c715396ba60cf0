"""Offers of moves, and members who talk, for tests of moves in the hook."""

from __future__ import annotations

from enforcer.local.learned import kin_table
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.world import World, container, member

ON = {"0": "0-3,8-11", "1": "4-7,12-15"}
"""The CPUs of each NUMA node."""

HOLDS_S = 60.0
"""Seconds for which what is offered may wait."""


def offer(*steps: list[tuple[str, str, str]], generation: int = 1 << 32, traffic: float = 4.0) -> local.Moves:
    """Each step as ways (pod, from, to). generation: later than all newcomers, where it is not said."""
    made = local.Moves(generation=generation, traffic=traffic, pays=0.002, holds_s=HOLDS_S)
    for ways in steps:
        named = [
            local.Moves.Way(reservation=f"uid-{pod}", source=source, target=target) for pod, source, target in ways
        ]
        made.steps.add(gain=0.25, ways=named)
    return made


def talk(world: World, *pairs: str, weight: float = 1.0) -> None:
    """Each pair exchanges as much."""
    rows: dict[str, dict[str, float]] = {}
    for first, other in pairs:
        for mine, theirs in ((first, other), (other, first)):
            rows.setdefault(f"uid-{mine}", {})[f"uid-{theirs}"] = weight
    world.agent.ledger.learned.weighed(kin_table(rows))


def run(world: World, name: str, home: str, **more) -> None:
    """A member of its own group, nominated to a NUMA node."""
    cpus = more.pop("cpus_asked", 1)
    world.nominations.add(pb.Expect(pod=f"uid-{name}", numa_nodes=home))
    world.create(member(name, group=name, **more), container(name, cpus))
    assert world.mems(name) == home


def make(world: World, *ways: tuple[str, str, str], **more) -> list[nri.ContainerUpdate]:
    """One step, made and carried out."""
    offered = offer([*ways], **more)
    updates = world.agent.moves.make(offered.steps[0], offered)
    world.apply(updates)
    return updates
