"""Members that change between last-level caches while they run: to those that they talk with, and out of one that gets
hot. The second part of tests/e2e/guest/caches.py, after an enforcer that saw no traffic and used no CPU.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from standins.patience import PATIENCE_S, until
from tests.e2e.guest.talkers import POLL_S, WINDOW_S, Talker, Talkers
from tests.e2e.lab import kernel
from tests.e2e.lab.cri import POD_NETWORK, Kubelet

CACHE_CPUS = 4
PAIRS = {"catalogue": "browser", "stock": "buyer"}
"""Server -> its client. Both servers come first, so a cache of four CPUs has no room for their clients."""
FIRST_PORT = 8080

KEPT = {"span.numakin.io": "cache"}
SHOP = {"group.numakin.io": "shop"} | KEPT
WORKER = Talker("worker", {"group.numakin.io": "batch"} | KEPT, 1000)
COMPUTE = ("/bin/busybox", "sh", "-c", "for cpu in 1 2 3 4; do while :; do :; done & done; wait")


def watched(kubelet: Kubelet, folder: Path) -> Iterator[dict[str, Any]]:
    """What was found out, one after the other."""
    # How much its CPUs are used is what a cache gets hot by.
    talkers = Talkers(kubelet, folder, "--procfs", "/proc")
    talkers.enforcer.start(PATIENCE_S)
    try:
        yield from _meet(talkers)
        kubelet.end_all_pods()
        yield from _heat(talkers)
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


def _heat(talkers: Talkers) -> Iterator[dict[str, Any]]:
    """The emulated machine computes for as short a time as will do: each second of that takes it several."""
    talkers.start(WORKER, COMPUTE)
    yield {"begun": talkers.allowed(WORKER.name)}
    _told(talkers, "cache domain hot: its members have all CPUs of their NUMA node")
    for process in (kernel.cgroup(talkers.pids[WORKER.name], "cpuset") / "cgroup.procs").read_text().split():
        os.kill(int(process), signal.SIGSTOP)
    yield {"hot": _after(talkers, CACHE_CPUS + 1)}
    _told(talkers, "cache domain cool: its members are back")
    yield {"cool": _after(talkers, 1, CACHE_CPUS)}


def _told(talkers: Talkers, event: str) -> None:
    until(lambda: talkers.enforcer.log_records(event), f"the log to say {event!r}", PATIENCE_S, pause_s=POLL_S)


def _after(talkers: Talkers, at_least: int, at_most: int = 2 * CACHE_CPUS) -> dict[str, Any]:
    """What the worker has once it may run on so many CPUs."""

    def changed() -> bool:
        talkers.passer_by()
        return at_least <= len(os.sched_getaffinity(talkers.pids[WORKER.name])) <= at_most

    until(changed, f"the worker to have {at_least} to {at_most} CPUs", PATIENCE_S)
    return talkers.allowed(WORKER.name)
