"""A nomination as the message that carries it to an enforcer, and what else enforcers are sent."""

from __future__ import annotations

from extender.ledger import Nomination
from extender.state.pods import ContainerRow
from numakin.placement.model.demand import counted
from numakin.placement.namespaces import Namespaces
from numakin.wire import convert
from numakin.wire import report_pb2 as pb


def expect(nomination: Nomination) -> pb.ToEnforcer:
    pod, kin = nomination.pod, nomination.kin
    return pb.ToEnforcer(
        expect=pb.Expect(
            pod=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            numa_nodes=str(nomination.numa_nodes),
            generation=nomination.generation,
            containers=[_container(container, nomination) for container in pod.containers],
            workload=pod.workload,
            kin=[pb.KinWeight(pod=uid, weight=weight) for uid, weight in kin.weights.items()],
            kin_elsewhere=kin.elsewhere,
            room_milli=kin.room_milli,
            pod_demand=convert.demand_to(counted(pod.demand, nomination.used_milli)),
            planned=str(kin.planned),
            budget=pod.budget is not None,
            host_network=pod.host_network,
            scored=nomination.scored,
            replicas=[pb.ReplicaCount(**count._asdict()) for count in nomination.replicas],
        )
    )


def settings(namespaces: Namespaces) -> pb.ToEnforcer:
    """What operators have set on Namespace objects."""
    return pb.ToEnforcer(namespaces=convert.namespaces_to(namespaces))


def _container(container: ContainerRow, nomination: Nomination) -> pb.ContainerDemand:
    opt_in = nomination.opt_ins.get(container.name)
    message = pb.ContainerDemand(
        name=container.name,
        demand=convert.demand_to(container.demand),
        init=container.init,
        restartable=container.restartable,
        slice=container.slice if nomination.pod.budget is not None else 0,
    )
    if opt_in is not None:
        message.policy, message.size = opt_in.policy, opt_in.size
    return message
