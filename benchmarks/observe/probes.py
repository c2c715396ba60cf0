"""The probes under test, switched as the enforcer switches them."""

import ctypes
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from enforcer.observe.bpf import syscall
from enforcer.observe.collectors import cgroup_skb, chain, socket_tracepoints, unix_sockets, wakeups
from enforcer.observe.collectors.duty import DutyCycle
from enforcer.observe.collectors.probes import Probes
from enforcer.observe.collectors.watch import CollectorPair

OBJ_GET_INFO_BY_FD, ENABLE_STATS = 15, 32
"""Of enum bpf_cmd in include/uapi/linux/bpf.h."""


def edges() -> list[Probes]:
    """The preferred hook alone."""
    root = chain.cgroup_root()
    if root is None:
        raise SystemExit("cgroup v2 is not mounted")
    return [cgroup_skb.open_collector(root)]


def sockets() -> list[Probes]:
    """The second in the chain alone."""
    return [socket_tracepoints.open_collector()]


def everything() -> list[Probes]:
    """The preferred hook, unix sockets and wake-ups."""
    return [*edges(), unix_sockets.open_collector(), wakeups.open_collector()]


@contextmanager
def watching(collectors: list[Probes], share: float, period_s: float) -> Iterator[CollectorPair]:
    """A thread that steps and reads as the observer does, for as long as the context."""
    watch = CollectorPair(collectors, DutyCycle(share, period_s), time.monotonic())
    stop = threading.Event()
    due = watch.step(time.monotonic())

    def step() -> None:
        nonlocal due
        while not stop.wait(max(0.0, due - time.monotonic())):
            due = watch.step(time.monotonic())

    thread = threading.Thread(target=step)
    thread.start()
    try:
        yield watch
    finally:
        stop.set()
        thread.join()
        for collector in collectors:
            collector.detach()


def nanoseconds_per_event(collectors: list[Probes], load: Callable[[], float]) -> dict[str, tuple[float, int]]:
    """(mean, runs) of each program by the kernel's own statistics, which include reading its clock twice."""
    stats = syscall.call(ENABLE_STATS, struct.pack("=I", 0))  # until the descriptor is closed; Linux 5.8
    programs = {name: fd for collector in collectors for name, fd in collector.loaded.programs.items()}
    before = {name: _statistics(fd) for name, fd in programs.items()}
    for collector in collectors:
        collector.attach()
    load()
    for collector in collectors:
        collector.detach()
    measured = {}
    for name, fd in programs.items():
        spent, runs = (after - at for after, at in zip(_statistics(fd), before[name], strict=True))
        if runs:
            measured[name] = (spent / runs, runs)
    os.close(stats)
    return measured


def _statistics(program: int) -> tuple[int, int]:
    """(nanoseconds, runs) of a program: run_time_ns and run_cnt of struct bpf_prog_info."""
    info = ctypes.create_string_buffer(232)
    syscall.call(OBJ_GET_INFO_BY_FD, struct.pack("=IIQ", program, len(info), ctypes.addressof(info)))
    nanoseconds, runs = struct.unpack_from("=QQ", info, 192)
    return nanoseconds, runs
