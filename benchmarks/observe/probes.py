"""The probes under test, switched as the enforcer switches them."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from enforcer.observe.bpf import syscall
from enforcer.observe.collectors import cgroup_skb, chain, socket_tracepoints, unix_sockets, wakeups
from enforcer.observe.collectors.duty import DutyCycle
from enforcer.observe.collectors.probes import Probes
from enforcer.observe.collectors.watch import CollectorPair


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
    stats = syscall.enable_stats()
    programs = {name: fd for collector in collectors for name, fd in collector.loaded.programs.items()}
    before = {name: syscall.run_statistics(fd) for name, fd in programs.items()}
    for collector in collectors:
        collector.attach()
    load()
    for collector in collectors:
        collector.detach()
    measured = {}
    for name, fd in programs.items():
        spent, runs = (after - at for after, at in zip(syscall.run_statistics(fd), before[name], strict=True))
        if runs:
            measured[name] = (spent / runs, runs)
    os.close(stats)
    return measured
