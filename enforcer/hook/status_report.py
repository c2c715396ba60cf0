"""What `numakin-enforcer status` shows: the hook's state as JSON values."""

from __future__ import annotations

from enforcer.hook.agent import Agent
from proto import report_pb2 as pb


def containers(agent: Agent) -> list[dict[str, object]]:
    """The last decision on each container."""
    return [_container(agent, key, record) for key, record in agent.records.latest().items()]


def _container(agent: Agent, key: str, record: pb.DecisionRecord) -> dict[str, object]:
    allocation = agent.occupancy.allocations.get(key)
    return {
        "pod": f"{record.namespace}/{record.pod_name}",
        "container": record.container_name,
        "id": key,
        "numa_nodes": record.numa_nodes,
        "cpus": str(allocation.cpus) if allocation is not None else "",
        "mems": str(allocation.mems) if allocation is not None else "",
        "reasons": [
            " ".join(filter(None, (reason.what, reason.number))) + f": {reason.effect}" for reason in record.reasons
        ],
    }
