"""Bytes and messages over AF_UNIX sockets between cgroups. Linux 6.3 and BTF."""

from functools import partial

from enforcer.observe.bpf import loader, syscall
from enforcer.observe.bpf.pair_map import MAPS, OFFSETS, PAIRS, SOURCES, PairMap, most_pairs
from enforcer.observe.collectors.probes import Probes

NAME = "unix_sockets"
PROGRAM = "numakin_unix"
PEER_OFFSETS = (
    "sock_common.skc_family",
    "sock.sk_peer_pid",
    "sock.sk_cgrp_data",
    "unix_sock.peer",
    "pid.tasks",
    "pid.numbers",
    "task_struct.pid_links",
)


def request(pairs: int = PAIRS) -> loader.LoadRequest:
    return loader.LoadRequest(
        NAME,
        (*SOURCES, "unix_sockets.bpf.c"),
        {PROGRAM: "raw_tracepoint"},
        MAPS,
        (*OFFSETS, *PEER_OFFSETS),
        {"PAIRS": pairs},
    )


def open_collector(pairs: int = 0) -> Probes:
    """Refused or OSError if the kernel says no. pairs: 0: as many as this machine has memory for."""
    pairs = pairs or most_pairs(syscall.possible_cpus())
    loaded = loader.load(request(pairs))
    attach = partial(syscall.attach_raw_tracepoint, loaded.programs[PROGRAM], "sock_send_length")
    return Probes(NAME, loaded, PairMap(loaded, "unix", pairs), [attach])
