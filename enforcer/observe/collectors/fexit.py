"""Third in the chain: trampolines at the exits of inet_sendmsg and its kin.

Needs BTF, and a kernel that may patch its own text.
"""

from functools import partial

from enforcer.observe.attribution.identity import BY_CGROUP, SocketIdentity
from enforcer.observe.bpf import loader, syscall
from enforcer.observe.bpf.flow_map import EDGES, MAPS, SOURCES, FlowMap, sizes
from enforcer.observe.collectors.probes import Probes

NAME = "fexit"
OFFSETS = ("sock_common.skc_v6_daddr", "sock_common.skc_v6_rcv_saddr")
FUNCTIONS = ("inet_sendmsg", "inet6_sendmsg", "inet_recvmsg", "inet6_recvmsg")
STATE = "numakin_state"


def request(edges: int = EDGES, identity: SocketIdentity = BY_CGROUP) -> loader.LoadRequest:
    return loader.LoadRequest(
        NAME,
        (*SOURCES, "sockets.h", "calls.h", "fexit.bpf.c"),
        {**dict.fromkeys(FUNCTIONS, "tracing"), STATE: "raw_tracepoint"},
        MAPS,
        (*OFFSETS, *identity.offsets),
        {**sizes(edges), **identity.defines},
        identity.switches,
    )


def open_collector(edges: int = EDGES, identity: SocketIdentity = BY_CGROUP) -> Probes:
    """Count for every cgroup. Refused or OSError if the kernel says no."""
    loaded = loader.load(request(edges, identity))
    # A tracing program was loaded for its function, so it is attached without a name.
    attachments = [partial(syscall.attach_raw_tracepoint, loaded.programs[program], None) for program in FUNCTIONS]
    attachments.append(partial(syscall.attach_raw_tracepoint, loaded.programs[STATE], "inet_sock_set_state"))
    return Probes(NAME, loaded, FlowMap(loaded, edges), attachments)
