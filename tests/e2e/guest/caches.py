"""Runs inside the emulated machine, whose NUMA nodes have two last-level caches each: pods that keep to one of them.

    python3 -m tests.e2e.guest.caches

Prints a JSON object a line: first the CPUs of each cache, then each pod with what the extender predicted and what the
kernel says, then where all may run before a pod takes CPUs of a cache for itself, beside it, and after it has gone; then
what tests/e2e/guest/cache_moves.py finds. At the end come the logs.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.e2e.guest import cache_moves, logs
from tests.e2e.guest.world import PodRequest, World

CACHE = "cache"

PODS = (
    PodRequest("cart", "shop", 1000, span=CACHE),
    PodRequest("ledger", "bank", 1000, span=CACHE),
    PodRequest("checkout", "shop", 1000, span=CACHE),
    PodRequest("teller", "bank", 1000, span=CACHE),
    PodRequest("payment", "shop", 1500, span=CACHE),
    # The group's cache of four CPUs has no room for it.
    PodRequest("search", "shop", 1500, span=CACHE),
    PodRequest("batch", "nightly"),
    # No cache holds it.
    PodRequest("index", "warehouse", 4500, span=CACHE),
)
ALONE = PodRequest("alone", "own", 3000, exclusive=True)
"""Both caches where it finds room become too small for their members."""

PASSER_BY = PodRequest("passer-by", "nightly")
"""A runtime of this age takes new cpusets for others only along with an answer about a member."""


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    print(json.dumps({"caches": caches()}), flush=True)
    try:
        with ExitStack() as stack:
            world = World(stack, folder)
            for request in PODS:
                print(json.dumps(world.place(request)), flush=True)
            print(json.dumps({"before": world.where()}), flush=True)
            print(json.dumps(world.place(ALONE)), flush=True)
            print(json.dumps({"beside": world.where()}), flush=True)
            world.end(ALONE)
            world.place(PASSER_BY)
            print(json.dumps({"after": world.where()}), flush=True)
            kubelet = world.kubelet
        kubelet.end_all_pods()
        for found in cache_moves.watched(kubelet, folder / "talking"):
            print(json.dumps(found), flush=True)
    finally:
        logs.show(folder)
        logs.show(folder / "talking")


def caches() -> list[str]:
    """CPUs of each last-level cache, as the kernel tells them."""
    files = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cache/index3/shared_cpu_list")
    return sorted({file.read_text().strip() for file in files})


if __name__ == "__main__":
    main()
