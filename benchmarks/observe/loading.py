"""What it costs to load the BPF programs: as they were built ahead, and compiled on the spot by bcc.

    python -m benchmarks.observe.loading              half a minute

CPU time and peak memory (RSS) of the loader's child, medians; the two ways take turns. Root.
"""

import multiprocessing
import resource
from concurrent.futures import ProcessPoolExecutor
from statistics import median

from enforcer.observe.bpf.loader import WAYS, LoadRequest
from enforcer.observe.collectors import cgroup_skb, socket_tracepoints, unix_sockets, wakeups

TURNS = 7
REQUESTS = (cgroup_skb.request(), unix_sockets.request(), wakeups.request(), socket_tracepoints.request())


def cost(way: int, request: LoadRequest) -> tuple[float, float]:
    """CPU milliseconds, and MiB at the peak, of the only child that this process has had. LoadRefused."""
    WAYS[way](request).close()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (used.ru_utime + used.ru_stime), used.ru_maxrss / 1024


def main() -> None:
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, fresh, max_tasks_per_child=1) as processes:
        print(f"{'':20} {'built ahead':>18} {'by bcc':>18}   medians of {TURNS}")
        for request in REQUESTS:
            turns = [[processes.submit(cost, way, request).result() for way in (0, 1)] for _ in range(TURNS)]
            cells = []
            for way in (0, 1):
                milliseconds, mebibytes = (median(turn[way][figure] for turn in turns) for figure in (0, 1))
                cells.append(f"{milliseconds:5.0f} ms, {mebibytes:4.0f} MiB")
            print(f"{request.name:20} {cells[0]:>18} {cells[1]:>18}")


if __name__ == "__main__":
    main()
