"""What a node's traffic costs on the wire."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from queue import Queue
from uuid import UUID

import pytest

from enforcer.observe.collectors.duty import DutyCycle
from enforcer.observer.moves.candidates import REST
from enforcer.observer.traffic_loop import MOST_FLOWS, TrafficLoop
from enforcer.settings.config import Config
from lab.standins.patience import PATIENCE_S
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.placement.traffic.graph import Flow
from numakin.placement.traffic.window import Window
from numakin.process.threads import Threads
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb
from tests import machines
from tests.enforcer.observer.outlets import NOWHERE
from tests.supervised import threads

ONE_NODE = Machine((NumaNode(0, CpuSet.parse("0-7"), 1 << 30, {0: 10}),))


def uid(number: int) -> str:
    return str(UUID(int=number << 64 | number))


def test_a_busy_node_tells_a_few_kilobytes_a_window_and_loses_nothing() -> None:
    received: list[pb.Traffic] = []
    watching = TrafficLoop(Config(), ONE_NODE, replace(NOWHERE, traffic=received.append), threads())
    pods = [uid(number) for number in range(60)]
    containers = [local.LocalContainer(id=pod, pod=pod, workload=f"ns/Pod/{pod}", opted_in=True) for pod in pods]
    watching.received(local.Containers(whole=True, containers=containers))
    watching._take_over()
    flows = tuple(Flow(entry, other, "tcp", 10_000, 100) for entry, other in pairwise(pods))
    watching._learn(Window(10.0, flows), "test")
    while len(received[-1].flows) == MOST_FLOWS:
        watching._learn(Window(10.0), "test")
    assert max(message.ByteSize() for message in received) <= 4096
    assert sum(flow.bytes for message in received for flow in message.flows) == 10_000 * len(flows)


def test_pods_that_have_ended_within_the_window_are_learned_from_and_told() -> None:
    """As those of a job of seconds: of the next one its workloads are known."""
    tables, told = list[local.KinTable](), list[pb.Traffic]()
    watching = TrafficLoop(Config(), ONE_NODE, replace(NOWHERE, kin=tables.append, traffic=told.append), threads())
    watching.received(local.Containers(whole=True, containers=[member(1), member(2)]))
    watching._take_over()
    again = local.LocalContainer(id=uid(3), pod=uid(3), workload="ns/Pod/2", opted_in=True)
    watching.received(local.Containers(containers=[again], gone=[uid(1), uid(2)]))
    watching._take_over()
    watching._learn(Window(10.0, (Flow(uid(1), uid(2), "tcp", 10_000, 100),)), "test")
    assert {row.pod: [peer.pod for peer in row.kin] for row in tables[-1].rows} == {"ns/Pod/1": [uid(3)]}
    assert [flow.bytes for flow in told[-1].flows] == [10_000]


class Kernel:
    """A collector that has a flow between the two pods in each window, or raises what it is given first."""

    collector, programs, refusals, unseen = "test", "", (), {}

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.opened = self.closed = 0

    def __call__(self, *_: object) -> "Kernel":
        self.opened += 1
        return self

    def received(self, containers: Iterable[local.LocalContainer]) -> None:
        self.containers = list(containers)

    def step(self, now: float) -> float:
        if self.faults:
            raise self.faults.pop()
        return now + 0.01

    def window(self, _now: float) -> Window:
        return Window(1.0, (Flow(uid(1), uid(2), "tcp", 10_000, 100),))

    def close(self) -> None:
        self.closed += 1


def test_learning_goes_on_after_a_fault_and_opens_the_kernel_anew() -> None:
    kernel, failures, learned = Kernel(RuntimeError("dictionary changed size during iteration")), Queue(), Queue()
    outlets = replace(NOWHERE, kin=learned.put)
    watching = TrafficLoop(Config(window_s=1.0), ONE_NODE, outlets, Threads(failures.put), kernel)
    watching.received(local.Containers(whole=True, containers=[member(1), member(2)]))
    watching.start()
    assert failures.get(timeout=PATIENCE_S).thread == "traffic"
    assert {row.pod for row in learned.get(timeout=PATIENCE_S).rows} >= {uid(1), uid(2)}
    watching.stop(PATIENCE_S)
    assert (kernel.opened, kernel.closed) == (2, 2)


@pytest.mark.parametrize("window_s", [1.0, 2.5, 9.0, 10.0, 15.0, 600.0])
def test_of_each_window_the_probes_see_their_share_however_short_it_is(window_s: float) -> None:
    duties = list[DutyCycle]()

    def opened(duty: DutyCycle, _clock: Callable[[], float]) -> Kernel:
        duties.append(duty)
        return Kernel()

    watching = TrafficLoop(Config(window_s=window_s, observe="0.1"), ONE_NODE, NOWHERE, threads(), opened)
    watching._opened()
    ends = [number * window_s for number in range(60)]
    seen = [duties[0].on_until(end) - duties[0].on_until(begin) for begin, end in pairwise(ends)]
    assert min(seen) > 0.1 * min(window_s, 10.0) / 2
    assert sum(seen) == pytest.approx(0.1 * ends[-1], rel=0.1)


def test_what_the_extender_counts_is_planned_for_before_the_next_window() -> None:
    there = Occupancy()
    for number in (1, 2):
        reservation = Reservation(
            uid(number), uid(number), "", NumaSet.parse("0"), Demand(1000), workload=f"ns/Pod/{number}"
        )
        there = there.with_reservation(reservation)
    plans: Queue[local.Plan] = Queue()
    outlets = replace(NOWHERE, plan=plans.put, occupancy=lambda: there)
    watching = TrafficLoop(Config(), machines.SMALL, outlets, threads())
    watching.received(local.Containers(whole=True, containers=[member(1), member(2)]))
    watching._take_over()
    watching._planner.start()
    watching._learn(Kernel().window(0.0), "test")
    assert replicas(plans.get(timeout=PATIENCE_S)) == {"ns/Pod/1": 1, "ns/Pod/2": 1}
    watching.counted([pb.ReplicaCount(workload="ns/Pod/2", bound=3)])
    watching._recount()
    assert replicas(plans.get(timeout=PATIENCE_S)) == {"ns/Pod/1": 1, "ns/Pod/2": 3}
    watching._planner.stop(PATIENCE_S)


def replicas(plan: local.Plan) -> dict[str, int]:
    return {row.name: sum(slot.count for slot in row.slots) for row in plan.workloads}


def test_what_the_watch_reads_does_not_change_while_it_reads_it() -> None:
    """The reader of the hook hands containers in at any time: also in the middle of an iteration over them."""
    watching = TrafficLoop(Config(), ONE_NODE, NOWHERE, threads())
    watching.received(local.Containers(whole=True, containers=[member(number) for number in range(3)]))
    watching._take_over()
    walk = iter(watching._containers.values())
    first = next(walk)
    watching.received(local.Containers(containers=[member(9)], gone=[uid(1)]))
    assert [first, *walk] == [member(number) for number in range(3)]
    watching._take_over()
    assert {container.pod for container in watching._containers.values()} == {uid(0), uid(2), uid(9)}


def test_moves_are_looked_for_in_what_is_now_and_none_is_offered_again_that_was_declined_so() -> None:
    apart = Occupancy()
    for number, home in ((1, "0"), (2, "1")):
        reservation = Reservation(
            uid(number), uid(number), "", NumaSet.parse(home), Demand(1000), workload=f"ns/Pod/{number}"
        )
        apart = apart.with_reservation(reservation)
    offers: Queue[local.Moves] = Queue()
    outlets = replace(NOWHERE, moves=offers.put, occupancy=lambda: apart)
    watching = TrafficLoop(Config(), machines.SMALL, outlets, threads())
    containers = [member(1), member(2)]
    for container in containers:
        container.move = "cpus"
    watching.received(local.Containers(whole=True, containers=containers))
    watching._take_over()
    watching._planner.start()

    def offered() -> local.Moves:
        watching._learn(Kernel().window(0.0), "test")
        return offers.get(timeout=PATIENCE_S)

    assert not any(offered().steps for _ in range(REST))
    declined = []
    for _ in range(2):
        offer = offered()
        assert offer.generation == apart.generation
        assert offer.steps[0].ways not in declined
        declined.append(offer.steps[0].ways)
        watching.declined(offer)
    assert not offered().steps
    watching._planner.stop(PATIENCE_S)


def member(number: int) -> local.LocalContainer:
    return local.LocalContainer(id=uid(number), pod=uid(number), workload=f"ns/Pod/{number}", opted_in=True)
