"""What the room that is held for a group costs its pods: CPU of a prioritize with the hold beside one without it.

    python -m benchmarks.extender.held                 500 and 5,000 nodes
    python -m benchmarks.extender.held --nodes 500

Two clusters alike, in which the pods of a group wait; in one of them room is held for it. Each question is put to both,
in turn first, so that whatever else the machine does falls on both: the figure is the median of the pairs' ratios.
`steady` asks about one pod again and again, `burst` about one after the other. What is done once the answer is sent
counts too.
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial

from benchmarks.extender.populated import body, populated, wait
from extender.scheduler.calls import SchedulerCall, SchedulerCalls
from extender.scheduler.metrics import Metrics
from extender.scheduler.verbs import Verbs
from extender.serving.application import calm_collector
from numakin.process.log import to_stderr

PODS = 60
PAIRS = 300
FIRST = 6
"""Pairs that fill the caches."""


def asked(nodes: int, *, held: bool) -> SchedulerCall:
    metrics, cluster = Metrics(), populated(nodes, clock=lambda: 0.0)  # no report ages
    wait(cluster, "group", PODS)
    if held:
        cluster.reserve()
    return SchedulerCalls(partial(Verbs, cluster, metrics, refuse=False), metrics)()["prioritize"]


def milliseconds(call: SchedulerCall, request: bytes) -> float:
    begin = time.thread_time()
    answer = call(request)
    if answer.after is not None:
        answer.after()
    assert answer.status == 200, answer.body
    return 1000 * (time.thread_time() - begin)


def pairs(calls: tuple[SchedulerCall, SchedulerCall], requests: list[bytes]) -> list[tuple[float, float]]:
    """Without and with the hold."""
    without, held = calls
    taken = []
    for at, request in enumerate(requests):
        if at % 2:
            first = milliseconds(without, request)
            taken.append((first, milliseconds(held, request)))
        else:
            first = milliseconds(held, request)
            taken.append((milliseconds(without, request), first))
    return taken[FIRST:]


def main() -> None:
    calm_collector()
    to_stderr("error", "text")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extender.held", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 5000], help="nodes offered in one call")
    print(f"{'nodes':>6}  {'pods':<7} {'without ms':>10} {'held ms':>8} {'ratio':>6}")
    for nodes in parser.parse_args().nodes:
        calls = asked(nodes, held=False), asked(nodes, held=True)
        bodies = [body(f"group-{at}", nodes, group="group") for at in range(PODS)]
        questions = {"steady": bodies[:1] * PAIRS, "burst": [bodies[at % PODS] for at in range(PAIRS)]}
        for name, requests in questions.items():
            taken = pairs(calls, requests)
            without, held = (statistics.median(column) for column in zip(*taken, strict=True))
            ratio = statistics.median(after / before for before, after in taken)
            print(f"{nodes:>6}  {name:<7} {without:>10.2f} {held:>8.2f} {ratio:>6.2f}")


if __name__ == "__main__":
    main()
