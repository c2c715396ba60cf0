"""Second in the chain: raw tracepoints of the socket calls. Linux 6.3, BTF, CAP_BPF and CAP_PERFMON; no tracefs."""

from functools import partial

from enforcer.observe.attribution.identity import BY_CGROUP, SocketIdentity
from enforcer.observe.bpf import loader, syscall
from enforcer.observe.bpf.flow_map import EDGES, MAPS, SOURCES, FlowMap, sizes
from enforcer.observe.collectors.probes import Probes

NAME = "socket_tracepoints"
OFFSETS = ("sock.sk_protocol", "sock_common.skc_v6_daddr", "sock_common.skc_v6_rcv_saddr")
TRACEPOINTS = {
    "numakin_send": "sock_send_length",
    "numakin_receive": "sock_recv_length",
    "numakin_state": "inet_sock_set_state",
}
"""Tracepoints by program."""


def request(edges: int = EDGES, identity: SocketIdentity = BY_CGROUP) -> loader.LoadRequest:
    return loader.LoadRequest(
        NAME,
        (*SOURCES, "sockets.h", "socket_tracepoints.bpf.c"),
        dict.fromkeys(TRACEPOINTS, "raw_tracepoint"),
        MAPS,
        (*OFFSETS, *identity.offsets),
        {**sizes(edges), **identity.defines},
        identity.switches,
    )


def open_collector(edges: int = EDGES, identity: SocketIdentity = BY_CGROUP) -> Probes:
    """Count for every cgroup. Refused or OSError if the kernel says no."""
    loaded = loader.load(request(edges, identity))
    attachments = [
        partial(syscall.attach_raw_tracepoint, loaded.programs[program], tracepoint)
        for program, tracepoint in TRACEPOINTS.items()
    ]
    return Probes(NAME, loaded, FlowMap(loaded, edges), attachments)
