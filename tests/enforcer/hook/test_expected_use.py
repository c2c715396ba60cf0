"""What pods of workloads were seen to use, as the hook decides by it: newcomers and members that are there already."""

from __future__ import annotations

from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.world import World, container, member

USED = "shop/Deployment/web"


def expect(name: str, **more: object) -> pb.Expect:
    """As the extender sends it of a pod that asks for 100m."""
    demand = pb.Demand(cpu_milli=100)
    whole = pb.Demand(cpu_milli=100, **more)  # type: ignore[arg-type]  # by field
    containers = [pb.ContainerDemand(name="app", demand=demand)]
    return pb.Expect(pod=f"uid-{name}", workload=USED, containers=containers, pod_demand=whole)


def create(world: World, name: str, **more: object) -> None:
    world.agent.expect(expect(name, **more))
    world.create(member(name), container(name, cpus=0.1))


def reserved(world: World, name: str) -> tuple[int, int]:
    demand = world.agent.occupancy.reservations[f"uid-{name}"].demand
    return demand.cpu_milli, demand.used_milli


def whats(world: World) -> list[str]:
    return [f"{reason.what} {reason.number}" for reason in world.last.reasons]


def test_a_newcomer_counts_as_what_its_workload_was_seen_to_use(world: World) -> None:
    world.agent.used({USED: 2000})
    create(world, "a")
    assert reserved(world, "a") == (100, 2000)
    assert "counted as 2 CPUs" in whats(world)


def test_members_that_are_there_count_by_it_from_then_on_and_keep_their_place(world: World) -> None:
    create(world, "a")
    before, generation = world.cpus("a"), world.agent.occupancy.generation
    world.agent.used({USED: 2000})
    assert reserved(world, "a") == (100, 2000)
    assert world.cpus("a") == before
    assert world.agent.occupancy.generation > generation, "it is reported"


def test_what_the_extender_knows_holds_until_the_node_has_seen_enough(world: World) -> None:
    create(world, "a", used_milli=3000)
    assert reserved(world, "a") == (100, 3000)
    world.agent.used({USED: 500})
    assert reserved(world, "a") == (100, 500)


def test_a_workload_that_uses_less_than_it_asks_for_keeps_what_it_asks_for(world: World) -> None:
    world.agent.used({USED: 50})
    create(world, "a")
    assert reserved(world, "a") == (100, 0)
    assert not any(what.startswith("counted as") for what in whats(world))


def test_a_group_goes_on_where_there_is_cpu_for_it(world: World) -> None:
    """Of 100m each, dozens would fit by their requests."""
    world.agent.used({USED: 2000})
    for name in "abcdef":
        create(world, name)
    homes = [str(world.agent.occupancy.reservations[f"uid-{name}"].numa_nodes) for name in "abcdef"]
    assert homes == ["0", "0", "0", "0", "1", "1"], "four of two CPUs each fill a NUMA node of eight"


def test_what_was_told_of_other_workloads_stays(world: World) -> None:
    world.agent.used({USED: 2000, "shop/Deployment/other": 700})
    world.agent.used({"shop/Deployment/other": 900})
    create(world, "a")
    assert reserved(world, "a") == (100, 2000)
