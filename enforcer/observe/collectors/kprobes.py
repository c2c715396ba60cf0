"""Fourth in the chain: kprobes and kretprobes on inet_sendmsg and its kin.

Needs CONFIG_KPROBES, but neither BTF nor tracefs: so it can't read the network namespace of a socket, and what has no
cgroup v2 of its own is known by its address alone.
"""

from functools import partial

from enforcer.observe.attribution.identity import BY_CGROUP
from enforcer.observe.bpf import loader, perf, syscall
from enforcer.observe.bpf.flow_map import EDGES, MAPS, SOURCES, FlowMap, sizes
from enforcer.observe.collectors.probes import Probes

NAME = "kprobes"
STATE = "numakin_state"
PROBES = (
    ("inet_sendmsg", "numakin_enter_s", "numakin_leave_s"),
    ("inet6_sendmsg", "numakin_enter_s", "numakin_leave_s"),
    ("inet_recvmsg", "numakin_enter_r", "numakin_leave_r"),
    ("inet6_recvmsg", "numakin_enter_r", "numakin_leave_r"),
)
"""(function, program at its entry, program at its return)."""


def request(edges: int = EDGES) -> loader.LoadRequest:
    programs = dict.fromkeys((name for _, *names in PROBES for name in names), "kprobe")
    return loader.LoadRequest(
        NAME,
        (*SOURCES, "sockets.h", "calls.h", "kprobes.bpf.c"),
        {**programs, STATE: "raw_tracepoint"},
        MAPS,
        defines={**sizes(edges), **BY_CGROUP.defines},
        switches=BY_CGROUP.switches,
    )


def open_collector(edges: int = EDGES) -> Probes:
    """Count for every cgroup. Refused or OSError if the kernel says no."""
    loaded = loader.load(request(edges))
    attachments = [partial(syscall.attach_raw_tracepoint, loaded.programs[STATE], "inet_sock_set_state")]
    for function, enter, leave in PROBES:
        attachments.append(partial(perf.attach_kprobe, loaded.programs[leave], function, at_return=True))
        attachments.append(partial(perf.attach_kprobe, loaded.programs[enter], function, at_return=False))
    return Probes(NAME, loaded, FlowMap(loaded, edges), attachments)
