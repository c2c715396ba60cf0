"""A promise as the message that tells an enforcer of it."""

from __future__ import annotations

from extender.cluster.pods import ContainerRow
from extender.cluster.state import Promise
from placement.optin import OptIn
from proto import convert
from proto import report_pb2 as pb


def expect(promise: Promise) -> pb.ToEnforcer:
    pod, kin = promise.pod, promise.kin
    return pb.ToEnforcer(
        expect=pb.Expect(
            pod=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            numa_nodes=str(promise.numa_nodes),
            generation=promise.generation,
            containers=[_container(one, promise.said.get(one.name)) for one in pod.containers],
            workload=pod.workload,
            kin=[pb.KinWeight(pod=uid, weight=weight) for uid, weight in kin.weights.items()],
            kin_elsewhere=kin.elsewhere,
            room_milli=kin.room_milli,
            pod_demand=convert.demand_to(pod.demand),
            planned=str(kin.planned),
        )
    )


def _container(one: ContainerRow, said: OptIn | None) -> pb.ContainerDemand:
    message = pb.ContainerDemand(name=one.name, demand=convert.demand_to(one.demand))
    if said is not None:
        message.policy, message.size = said.policy, said.size
    return message
