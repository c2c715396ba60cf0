"""The extender's HTTP port over a populated cluster, or over answers that are ready made: what the server itself takes.

python -m benchmarks.extender.server NODES [--constant | --refuse] [--tls FOLDER]

Prints HOST:PORT and serves until it is killed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks.extender.populated import body, populated
from extender.cluster import Cluster
from extender.scheduler import wire
from extender.scheduler.calls import CallAnswer, SchedulerCall, SchedulerCalls
from extender.scheduler.metrics import Metrics
from extender.scheduler.verbs import Verbs
from extender.serving import limits
from extender.serving.application import Application, Served, calm_collector
from extender.serving.http_service import HttpService
from extender.serving.refusals import LimitRefusals
from extender.serving.scheduler_answers import scheduler_answers
from numakin.process.log import to_stderr
from numakin.process.threads import Threads
from numakin.wire.certificates import Files, Renewed


@dataclass(frozen=True, slots=True)
class Constant:
    """In place of a `SchedulerCall`."""

    answer: CallAnswer

    def __call__(self, _body: bytes) -> CallAnswer:
        return self.answer


def constants(nodes: int) -> dict[str, Constant]:
    """As long as the extender's own answers."""
    asked = body("any", nodes)
    names = wire.arguments(asked).names
    answers = {"filter": wire.every_node(asked), "prioritize": wire.prioritize_answer(names, [5] * nodes)}
    return {verb: Constant(CallAnswer(200, answer)) for verb, answer in answers.items()}


def _tls(folder: str) -> Renewed:
    cert, key, ca = (f"{folder}/{name}" for name in ("tls.crt", "tls.key", "ca.crt"))
    return Renewed(Files(cert, key, ca), lambda why: print(why, file=sys.stderr))


def main() -> None:
    to_stderr("error", "text")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extender.server", description=__doc__)
    parser.add_argument("nodes", type=int)
    parser.add_argument("--constant", action="store_true", help="answers that are ready made")
    parser.add_argument("--refuse", action="store_true", help="as the extender's option")
    parser.add_argument("--tls", metavar="FOLDER", help="of the port's tls.crt and tls.key, and of its callers' ca.crt")
    options = parser.parse_args()
    cluster, metrics = Cluster() if options.constant else populated(options.nodes), Metrics()
    calls: Callable[[], Mapping[str, SchedulerCall]]
    calls = SchedulerCalls(partial(Verbs, cluster, metrics, refuse=options.refuse), metrics)
    if options.constant:
        ready_made = constants(options.nodes)
        calls = lambda: ready_made  # type: ignore[assignment, return-value]  # noqa: E731 - each answers as a call does
    calm_collector()
    threads = Threads(lambda failure: print(failure, file=sys.stderr))
    refusals = LimitRefusals(lambda _limit: None)
    port = HttpService(scheduler_answers(calls), limits.BODY_BYTES, refusals)
    Application(
        {"http": Served("127.0.0.1:0", port, _tls(options.tls) if options.tls else None)},
        lambda addresses: print(json.dumps(dict(addresses)), flush=True),
        lambda: None,
        threads=threads,
        refusals=refusals,
    ).run()


if __name__ == "__main__":
    main()
