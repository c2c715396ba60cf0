"""Containers whose traffic can't be distinguished from others', and why. Pure.

A container is known by its own cgroup v2; without one a pod is known by its network namespace or its address, and a
container in the host's network by its processes, where the collector in force counts by them.
"""

from collections import Counter
from collections.abc import Mapping

from enforcer.observe.attribution.containers import ContainerIndex
from enforcer.observe.attribution.identity import SocketIdentity

BY_PROCESS = frozenset({"socket_tracepoints", "fexit"})
"""Collectors that know the process that sends or receives."""

BY_NAMESPACE = BY_PROCESS | {"inet_diag"}

HOST_NETWORK = "in the host's network, without a cgroup v2 of its own"
NO_ADDRESS = "neither a cgroup v2 of its own nor a known address or network namespace"


def unseen(residents: ContainerIndex, collector: str, identity: SocketIdentity) -> Mapping[str, int]:
    """Current containers by the reason for which they can't be distinguished; those that can are in none."""
    told_apart = collector in BY_PROCESS and identity.host_namespace
    counts: Counter[str] = Counter()
    for container in residents.current:
        if container.cgroup_ids - residents.shared_cgroups:
            continue
        if container.host_network:
            counts[HOST_NETWORK] += not told_apart or bool(container.cgroup_ids)
        else:
            counts[NO_ADDRESS] += not container.addresses and not container.namespace
    return {reason: count for reason, count in counts.items() if count}
