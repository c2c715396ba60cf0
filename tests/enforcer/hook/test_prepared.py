"""Decisions that are made before the container comes are those that would be made when it comes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enforcer.hook.wiring import Wiring
from enforcer.local.learned import kin_table
from numakin.placement.decide.asked.whole_pod import as_placed
from numakin.placement.decide.decide import Decision, decide
from numakin.placement.state.occupancy import Occupancy
from numakin.wire import report_pb2 as pb
from tests import examples
from tests.enforcer.hook.timers import TimersAlone
from tests.enforcer.hook.world import World, container, member, pod


@pytest.fixture
def world() -> World:
    return World()


def replica(name: str, workload: str = "web", **more: str):
    """A pod of a Deployment; a sandbox as the runtime makes it."""
    made = member(f"{workload}-6d4cf-{name}", **more)
    made.labels["pod-template-hash"] = "6d4cf"
    return made


def limited(name: str):
    """A replica whose containers all have a memory limit."""
    sandbox = replica(name)
    sandbox.linux.cgroups_path = f"/kubepods/pod{sandbox.uid}/sandbox"
    sandbox.linux.pod_resources.memory.limit.value = 1 << 30
    return sandbox


def placed(world: World, name: str, *, ahead: bool, requested: float = 1, workload: str = "web", **more: str) -> None:
    sandbox = replica(name, workload, **more)
    world.agent.run_pod_sandbox(sandbox)
    while ahead and world.agent.prepare():
        pass
    world.create(sandbox, container(name, requested))


def decided(monkeypatch) -> list[str]:
    """The uids of the pods that are decided for from now on, in turn."""
    pods: list[str] = []

    def watched(machine, occupancy, request, kin):
        pods.append(request.pod)
        return decide(machine, occupancy, request, kin)

    monkeypatch.setattr("enforcer.hook.ledger.decide", watched)
    return pods


def test_a_replica_like_the_last_one_is_decided_for_before_its_container_comes(world: World, monkeypatch) -> None:
    placed(world, "a", ahead=True)
    pods = decided(monkeypatch)
    sandbox = replica("b")
    world.agent.run_pod_sandbox(sandbox)
    while world.agent.prepare():
        pass
    assert pods == [sandbox.uid]
    world.create(sandbox, container("b"))
    assert pods == [sandbox.uid], "the container is given what was decided"
    assert world.cpus("b") == world.cpus("a")


def test_one_that_asks_for_something_else_is_decided_for_anew(world: World, monkeypatch) -> None:
    placed(world, "a", ahead=True)
    pods = decided(monkeypatch)
    placed(world, "b", ahead=True, requested=3)
    assert len(pods) == 2


def test_what_happened_in_between_counts(world: World) -> None:
    """Its NUMA node is filled after the decision and before its container."""
    placed(world, "a", ahead=True, requested=2)
    sandbox = replica("b")
    world.agent.run_pod_sandbox(sandbox)
    while world.agent.prepare():
        pass
    world.agent.expect(pb.Expect(pod="uid-big", numa_nodes=world.mems("a")))
    world.create(member("big", group="other"), container("big", cpus=6))
    world.create(sandbox, container("b", cpus=2))
    assert world.mems("big") == world.mems("a") != world.mems("b")


def test_what_was_learned_in_between_counts(world: World) -> None:
    placed(world, "a", ahead=True)
    placed(world, "x", ahead=True, workload="other", group="other")
    assert world.mems("a") != world.mems("x")
    sandbox = replica("b")
    world.agent.run_pod_sandbox(sandbox)
    while world.agent.prepare():
        pass
    peer = replica("x", "other").uid
    world.agent.ledger.learned.weighed(kin_table({sandbox.uid: {peer: 1.0}}))
    world.create(sandbox, container("b"))
    assert world.mems("b") == world.mems("x")


def test_a_nomination_in_between_counts(world: World) -> None:
    placed(world, "a", ahead=True)
    sandbox = replica("b")
    world.agent.run_pod_sandbox(sandbox)
    while world.agent.prepare():
        pass
    other = {"0": "1", "1": "0"}[world.mems("a")]
    world.agent.expect(pb.Expect(pod=sandbox.uid, numa_nodes=other))
    world.create(sandbox, container("b"))
    assert world.mems("b") == other


def test_a_limit_of_the_pods_memory_that_comes_in_between_counts(world: World) -> None:
    """The kubelet sets it before the sandbox; who does so later must not find the memory left open."""
    sandbox = limited("a")
    world.create(sandbox, container("a"))
    world.limited = False
    sandbox = limited("b")
    world.agent.run_pod_sandbox(sandbox)
    while world.agent.prepare():
        pass
    world.limited = True
    world.create(sandbox, container("b"))
    assert world.mems("b") == world.mems("a") == "0"


def test_the_runtime_has_its_answer_before_the_decision_is_applied(world: World, monkeypatch) -> None:
    """It takes the longer the more containers there are."""
    placed(world, "a", ahead=True)
    sandbox = replica("b")
    world.agent.run_pod_sandbox(sandbox)
    while world.agent.prepare():
        pass
    applied: list[str] = []
    apply = Decision.applied

    def watched(decision, occupancy, request):
        applied.append(request.pod)
        return apply(decision, occupancy, request)

    monkeypatch.setattr(Decision, "applied", watched)
    adjustment, _ = world.agent.create_container(sandbox, container("b"))
    assert adjustment is not None
    assert applied == []
    assert sandbox.uid in world.agent.occupancy.directory.by_pod
    assert applied == [sandbox.uid]


def test_between_the_creates_of_a_burst_nothing_is_prepared_and_after_it_all_that_is_left(world, monkeypatch):
    placed(world, "first", ahead=False)
    loop = TimersAlone()
    wiring = Wiring(loop)
    wiring.agent = world.agent
    pods = decided(monkeypatch)
    sandboxes = {name: replica(name) for name in ("a", "b", "c")}
    for sandbox in sandboxes.values():
        wiring.appeared(sandbox)
        loop.go_on(0.0005)
    for name in ("a", "b"):
        world.create(sandboxes[name], container(name))
        wiring.publish_soon()
        loop.go_on(0.0005)
    assert pods == [sandboxes["a"].uid, sandboxes["b"].uid], "each when its container came"
    loop.go_on(0.002)
    assert pods[2:] == [sandboxes["c"].uid]
    world.create(sandboxes["c"], container("c"))
    assert pods[3:] == [], "the container is given what was prepared"


def test_a_pod_for_which_nothing_can_be_foreseen_for_a_fault_of_ours_costs_no_other_its_turn(
    world: World, monkeypatch
) -> None:
    placed(world, "a", ahead=True)
    broken, whole = replica("broken"), as_placed

    def faulty(machine, occupancy, request, key=""):
        if request.pod == broken.uid:
            raise ArithmeticError
        return whole(machine, occupancy, request, key)

    monkeypatch.setattr("enforcer.hook.ledger.as_placed", faulty)
    for sandbox in (broken, replica("b")):
        world.agent.run_pod_sandbox(sandbox)
    pods = decided(monkeypatch)
    assert [world.agent.prepare() for _ in range(3)] == [True, False, False]
    assert pods == [replica("b").uid]


def test_a_released_node_prepares_nothing(world: World) -> None:
    placed(world, "a", ahead=True)
    world.agent.release()
    world.agent.run_pod_sandbox(replica("b"))
    assert not world.agent.prepare()


def test_for_a_pod_that_is_gone_nothing_is_kept(world: World) -> None:
    placed(world, "a", ahead=True)
    sandbox = replica("b")
    world.agent.run_pod_sandbox(sandbox)
    world.agent.stop_pod_sandbox(sandbox)
    assert not world.agent.ledger.prepared.waiting


steps = st.lists(
    st.tuples(
        st.sampled_from(["create", "create", "plain", "stop"]),
        st.sampled_from(["web", "db"]),
        st.sampled_from([0.5, 1, 2, 5]),
        st.sampled_from([{}, {"cpus": "exclusive"}, {"scope": "container"}, {"policy": "restricted"}]),
    ),
    max_size=14,
)


@settings(max_examples=examples.of(60), deadline=None)
@given(steps)
def test_preparing_changes_no_answer(history) -> None:
    assert after(history, ahead=True) == after(history, ahead=False)


def after(history, *, ahead: bool) -> tuple[object, Occupancy]:
    world, live = World(), []
    for number, (step, workload, cpus, more) in enumerate(history):
        name = str(number)
        if step == "create":
            placed(world, name, ahead=ahead, requested=cpus, workload=workload, group=workload, **more)
            live.append((replica(name, workload), container(name, cpus)))
        elif step == "plain":
            world.agent.create_container(pod(name), container(name, cpus))
            live.append((pod(name), container(name, cpus)))
            world.cgroups[f"/kubepods/{name}"] = (world.machine.all_cpus, world.machine.all_mems)
        elif live:
            sandbox, ended = live.pop(0)
            world.apply(world.agent.stop_container(sandbox, ended))
            world.agent.stop_pod_sandbox(sandbox)
    return world.cgroups, world.agent.occupancy
