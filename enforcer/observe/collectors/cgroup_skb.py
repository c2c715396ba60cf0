"""The preferred hook: packets entering and leaving the sockets of every cgroup, by links on the root of cgroup v2.

Works from Linux 5.7, for TCP and UDP, connected or not, and beside other programs on the same cgroups.
"""

import os
from functools import partial
from pathlib import Path

from enforcer.observe.bpf import loader, syscall
from enforcer.observe.bpf.flow_map import EDGES, MAPS, SOURCES, FlowMap, sizes
from enforcer.observe.collectors.probes import Probes

NAME = "cgroup_skb"
PROGRAMS = {"numakin_ingress": "cgroup_skb", "numakin_egress": "cgroup_skb"}


def request(edges: int = EDGES) -> loader.LoadRequest:
    return loader.LoadRequest(NAME, (*SOURCES, "edges.bpf.c"), PROGRAMS, MAPS, defines=sizes(edges))


def open_collector(cgroup: Path, edges: int = EDGES) -> Probes:
    """Count for `cgroup`, a directory of cgroup v2, and all below it. Refused or OSError if the kernel says no."""
    loaded = loader.load(request(edges))

    def attach(program: str, kind: int) -> int:
        directory = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return syscall.attach_cgroup(loaded.programs[program], directory, kind)
        finally:
            os.close(directory)

    attachments = (
        partial(attach, "numakin_ingress", syscall.CGROUP_INET_INGRESS),
        partial(attach, "numakin_egress", syscall.CGROUP_INET_EGRESS),
    )
    return Probes(NAME, loaded, FlowMap(loaded, edges), attachments)
