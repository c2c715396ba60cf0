"""What a node's traffic costs on the wire."""

from itertools import pairwise
from uuid import UUID

from enforcer.config import Config
from enforcer.watching import MOST_FLOWS, Outlets, Watching
from enforcer.windows import Window
from placement.cpuset import CpuSet
from placement.occupancy import Occupancy
from placement.topology import Machine, NumaNode
from placement.traffic import Flow
from proto import local_pb2 as local
from proto import report_pb2 as pb

ONE_NODE = Machine((NumaNode(0, CpuSet.parse("0-7"), 1 << 30, {0: 10}),))


def uid(number: int) -> str:
    return str(UUID(int=number << 64 | number))


def test_a_busy_node_tells_a_few_kilobytes_a_window_and_loses_nothing() -> None:
    told: list[pb.Traffic] = []
    watching = Watching(Config(), ONE_NODE, Outlets(*[lambda _: None] * 3, told.append, Occupancy))
    pods = [uid(number) for number in range(60)]
    containers = [local.LocalContainer(id=pod, pod=pod, workload=f"ns/Pod/{pod}", opted_in=True) for pod in pods]
    watching.hear(local.Containers(whole=True, containers=containers))
    watching._news()
    flows = tuple(Flow(one, other, "tcp", 10_000, 100) for one, other in pairwise(pods))
    watching._learn(Window(10.0, flows), "test")
    while len(told[-1].flows) == MOST_FLOWS:
        watching._learn(Window(10.0), "test")
    assert max(message.ByteSize() for message in told) <= 4096
    assert sum(flow.bytes for message in told for flow in message.flows) == 10_000 * len(flows)
