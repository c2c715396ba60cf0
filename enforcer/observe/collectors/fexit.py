"""Third in the chain: trampolines at the exits of inet_sendmsg and its kin.

Needs BTF, and a kernel that may patch its own text.
"""

from functools import partial

from enforcer.observe.attribution.identity import BY_CGROUP, SocketIdentity
from enforcer.observe.bpf import loader, syscall
from enforcer.observe.bpf.flow_map import EDGES, MAPS, SOURCES, FlowMap
from enforcer.observe.collectors.probes import Probes

NAME = "fexit"
OFFSETS = ("sock_common.skc_v6_daddr", "sock_common.skc_v6_rcv_saddr")
FUNCTIONS = ("inet_sendmsg", "inet6_sendmsg", "inet_recvmsg", "inet6_recvmsg")
STATE = "numakin_state"


def open_collector(edges: int = EDGES, identity: SocketIdentity = BY_CGROUP) -> Probes:
    """Count for every cgroup. Refused or OSError if the kernel says no."""
    programs = dict.fromkeys(FUNCTIONS, "tracing")
    loaded = loader.load(
        loader.LoadRequest(
            (*SOURCES, "sockets.h", "calls.h", "fexit.bpf.c"),
            {**programs, STATE: "raw_tracepoint"},
            MAPS,
            (*OFFSETS, *identity.offsets),
            {"EDGES": edges, **identity.defines},
        )
    )
    # A tracing program was loaded for its function, so it is attached without a name.
    attachments = [partial(syscall.attach_raw_tracepoint, loaded.programs[program], None) for program in programs]
    attachments.append(partial(syscall.attach_raw_tracepoint, loaded.programs[STATE], "inet_sock_set_state"))
    return Probes(NAME, loaded, FlowMap(loaded, edges), attachments)
