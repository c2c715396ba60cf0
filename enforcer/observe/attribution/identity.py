"""How the programs that count at sockets tell local ends apart where containers have no cgroup v2 of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from enforcer.observe.attribution.processes import HOST, network_namespace

OFFSETS = ("sock_common.skc_net", "net.ns", "ns_common.inum")

NO_NAMESPACE = 1
"""An inode that no namespace has: theirs begin at PROC_DYNAMIC_FIRST, 0xF0000000 (fs/proc/generic.c)."""


@dataclass(frozen=True, slots=True)
class SocketIdentity:
    """`by_namespace`: by network namespace. `host_namespace`: the inode of the node's own, in which processes are told
    apart; 0 where it is not known.
    """

    by_namespace: bool = False
    host_namespace: int = 0

    @property
    def offsets(self) -> Sequence[str]:
        return OFFSETS if self.by_namespace else ()

    @property
    def defines(self) -> Mapping[str, int]:
        return {"HOST_NAMESPACE": self.host_namespace or NO_NAMESPACE}

    @property
    def switches(self) -> Mapping[str, int]:
        return {"BY_NAMESPACE": int(self.by_namespace)}


BY_CGROUP = SocketIdentity()


def by_namespace() -> SocketIdentity:
    """For a node whose containers are in cgroup v1. To see which namespace is the node's own takes CAP_SYS_PTRACE."""
    return SocketIdentity(by_namespace=True, host_namespace=network_namespace(HOST))
