"""Which cgroup wakes which: the only sign of pipes and of futexes on shared memory."""

from functools import partial

from enforcer.observe.bpf import loader, syscall
from enforcer.observe.bpf.pair_map import MAPS, OFFSETS, PAIRS, SOURCES, PairMap, most_pairs
from enforcer.observe.collectors.probes import Probes

NAME = "wakeups"
PROGRAM = "numakin_waking"


def request(pairs: int = PAIRS) -> loader.LoadRequest:
    sources = (*SOURCES, "wakeups.bpf.c")
    return loader.LoadRequest(NAME, sources, {PROGRAM: "raw_tracepoint"}, MAPS, OFFSETS, {"PAIRS": pairs})


def open_collector(pairs: int = 0) -> Probes:
    """Refused or OSError if the kernel says no. pairs: 0: as many as this machine has memory for."""
    pairs = pairs or most_pairs(syscall.possible_cpus())
    loaded = loader.load(request(pairs))
    attach = partial(syscall.attach_raw_tracepoint, loaded.programs[PROGRAM], "sched_waking")
    return Probes(NAME, loaded, PairMap(loaded, "wake", pairs), [attach])
