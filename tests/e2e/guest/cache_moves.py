"""Members that change between last-level caches while they run: to those that they talk with, and out of one that gets
hot. The second part of tests/e2e/guest/caches.py, after an enforcer that saw no traffic and used no CPU.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from enforcer.machine import load
from lab.standins.patience import PATIENCE_S, until
from numakin.placement.model.cpuset import CpuSet
from tests.e2e.guest.talkers import POLL_S, WINDOW_S, Talker, Talkers
from tests.e2e.lab import kernel
from tests.e2e.lab.cri import POD_NETWORK, Kubelet

CACHE_CPUS = 4
TICKS = 50
"""Between two looks, as at 100 a second."""
PAIRS = {"catalogue": "browser", "stock": "buyer"}
"""Server -> its client. Both servers come first, so a cache of four CPUs has no room for their clients."""
FIRST_PORT = 8080

KEPT = {"span.numakin.io": "cache"}
SHOP = {"group.numakin.io": "shop"} | KEPT
WORKER = Talker("worker", {"group.numakin.io": "batch"} | KEPT, 1000)
COMPUTE = ("/bin/busybox", "sh", "-c", "kill -STOP $$; for cpu in 1 2 3 4; do while :; do :; done & done; wait")
COMPUTES_S = 1.0
"""Each second of four CPUs takes the emulated machine several: as short as will do to see that the kernel counts them."""


def watched(kubelet: Kubelet, folder: Path) -> Iterator[dict[str, Any]]:
    """What was found out, one after the other."""
    talkers = Talkers(kubelet, folder)
    talkers.enforcer.start(PATIENCE_S)
    try:
        yield from _meet(talkers)
        kubelet.end_all_pods()
        yield from _heat(talkers, folder / "proc" / "stat")
    finally:
        talkers.enforcer.stop()


def _meet(talkers: Talkers) -> Iterator[dict[str, Any]]:
    ends = [*PAIRS, *PAIRS.values()]
    talkers.seeing()
    addresses = {
        server: talkers.serve(Talker(server, SHOP, 1500, network=POD_NETWORK), FIRST_PORT + at)
        for at, server in enumerate(PAIRS)
    }
    for server, client in PAIRS.items():
        talkers.ask(Talker(client, SHOP, 1500, network=POD_NETWORK), addresses[server])
    yield {"came": talkers.allowed(*ends)}

    def together() -> bool:
        talkers.passer_by()
        now = talkers.allowed(*ends)
        return all(now[server]["cpus"] == now[client]["cpus"] for server, client in PAIRS.items())

    until(together, "those that talk to share a cache", PATIENCE_S, pause_s=WINDOW_S)
    until(talkers.moves, "the moves to be logged", PATIENCE_S)
    yield {"met": talkers.allowed(*ends), "moves": talkers.moves()}


def _heat(talkers: Talkers, stat: Path) -> Iterator[dict[str, Any]]:
    """How much its CPUs are used is what a cache gets hot by, and that its members wait. The kernel's counts of use are
    seen for a moment, and then played on: computing for as long as it takes to be hot would take many minutes here. Two
    processes go on, and wait for one CPU.
    """
    talkers.start(WORKER, COMPUTE)
    cache = CpuSet.parse(kernel.allowed(talkers.pids[WORKER.name]).cpus)
    yield {"begun": talkers.allowed(WORKER.name), "computed": _computed(talkers.pids[WORKER.name], cache)}
    with _played(stat, cache), _waiting(talkers.pids[WORKER.name], cache):
        _told(talkers, "cache domain hot: no newcomers, and members are let out")
    yield {"hot": _after(talkers, CACHE_CPUS + 1)}
    _told(talkers, "cache domain cool: its members are at home")
    yield {"cool": _after(talkers, 1, CACHE_CPUS)}


def _computed(pid: int, cache: CpuSet) -> float:
    """How many CPUs of its cache the kernel counts as used while a worker computes, which is stopped again."""
    os.kill(pid, signal.SIGCONT)
    processes = kernel.cgroup(pid, "cpuset") / "cgroup.procs"
    until(lambda: len(processes.read_text().split()) > CACHE_CPUS, "the worker to compute", PATIENCE_S)
    before = load.cpu_times()
    time.sleep(COMPUTES_S)
    after = load.cpu_times()
    for process in processes.read_text().split():
        os.kill(int(process), signal.SIGSTOP)
    busy = load.shares(before, after)
    return sum(busy[cpu] for cpu in cache)


@contextmanager
def _waiting(pid: int, cache: CpuSet) -> Iterator[None]:
    """Meanwhile two of the worker's processes compute on one CPU of its cache."""
    processes = [int(each) for each in (kernel.cgroup(pid, "cpuset") / "cgroup.procs").read_text().split()]
    two = [each for each in processes if each != pid][:2]
    for process in two:
        os.sched_setaffinity(process, {cache.lowest})
        os.kill(process, signal.SIGCONT)
    try:
        yield
    finally:
        for process in two:
            os.kill(process, signal.SIGSTOP)


@contextmanager
def _played(stat: Path, busy: CpuSet) -> Iterator[None]:
    """Meanwhile the CPUs' times go on in a file like /proc/stat, those of some in use and all others idle."""
    text, ended = stat.read_text(), threading.Event()

    def play() -> None:
        for passed in count(1):
            stat.with_suffix(".next").write_text(_later(text, busy, passed * TICKS))
            stat.with_suffix(".next").replace(stat)
            if ended.wait(POLL_S):
                return

    thread = threading.Thread(target=play)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _later(text: str, busy: CpuSet, ticks: int) -> str:
    """The file's first and fourth numbers are user and idle time, in ticks."""
    lines = []
    for line in text.splitlines():
        words = line.split()
        if found := re.fullmatch(r"cpu(\d+)", words[0] if words else ""):
            column = 1 if int(found[1]) in busy else 4
            words[column] = str(int(words[column]) + ticks)
        lines.append(" ".join(words))
    return "\n".join(lines) + "\n"


def _told(talkers: Talkers, event: str) -> None:
    until(lambda: talkers.enforcer.log_records(event), f"the log to say {event!r}", PATIENCE_S, pause_s=POLL_S)


def _after(talkers: Talkers, at_least: int, at_most: int = 2 * CACHE_CPUS) -> dict[str, Any]:
    """What the worker has once it may run on so many CPUs."""

    def changed() -> bool:
        talkers.passer_by()
        return at_least <= len(os.sched_getaffinity(talkers.pids[WORKER.name])) <= at_most

    until(changed, f"the worker to have {at_least} to {at_most} CPUs", PATIENCE_S)
    return talkers.allowed(WORKER.name)
