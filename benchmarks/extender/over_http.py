"""filter and prioritize as kube-scheduler waits for them, over HTTP, beside a constant answer of the same server.

    python -m benchmarks.extender.over_http                            500 and 5,000 nodes
    python -m benchmarks.extender.over_http --nodes 500 --rounds 100 --json

Each round asks both verbs for one new pod of each kind, and the constant server as well, in turn: ratios are of the
same round. Nodes report all the while only in `make simulate`; here they are silent.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from benchmarks.extender.populated import body

KINDS: Mapping[str, Mapping[str, str]] = {
    "not opted in": {},
    "opted in": {"group": "shop"},
    "exclusive CPUs": {"group": "shop", "cpus": "exclusive"},
    "refuse mode": {"group": "shop", "policy": "restricted"},
}
WARM = 3
"""Rounds before those that count."""

Spans = dict[str, list[float]]


@contextmanager
def served(nodes: int, *options: str) -> Iterator[http.client.HTTPConnection]:
    command = [sys.executable, "-m", "benchmarks.extender.server", str(nodes), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["http"]
            connection = http.client.HTTPConnection(address, timeout=60)
            yield connection
            connection.close()
        finally:
            process.kill()


def asked(connection: http.client.HTTPConnection, request: bytes) -> float:
    """Seconds for both verbs."""
    begin = time.perf_counter()
    for verb in ("filter", "prioritize"):
        connection.request("POST", f"/{verb}", request, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{verb}: HTTP {answer.status}")
    return time.perf_counter() - begin


def measured(nodes: int, rounds: int) -> Spans:
    """Milliseconds by kind, round by round."""
    spans: Spans = defaultdict(list)
    with ExitStack() as stack:
        constant = stack.enter_context(served(nodes, "--constant"))
        numakin, refusing = stack.enter_context(served(nodes)), stack.enter_context(served(nodes, "--refuse"))
        for number in range(WARM + rounds):
            for kind, keys in KINDS.items():
                request = body(f"{kind.replace(' ', '-').lower()}-{number}", nodes, **keys)
                spans[f"constant beside {kind}"].append(1000 * asked(constant, request))
                spans[kind].append(1000 * asked(refusing if "policy" in keys else numakin, request))
    return {kind: values[WARM:] for kind, values in spans.items()}


def ratios(spans: Spans, kind: str) -> list[float]:
    return [own / floor for own, floor in zip(spans[kind], spans[f"constant beside {kind}"], strict=True)]


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.extender.over_http", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 5000], help="nodes offered in one call")
    parser.add_argument("--rounds", type=int, default=200, help="pods of each kind (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="all spans, for a program")
    options = parser.parse_args()
    results = {nodes: measured(nodes, options.rounds) for nodes in options.nodes}
    if options.json:
        print(json.dumps(results))
        return
    print(f"{'nodes':>6}  {'pod':<15}{'p50 ms':>8}{'p99 ms':>8}   beside a constant answer")
    for nodes, spans in results.items():
        for kind in KINDS:
            own = spans[kind]
            print(
                f"{nodes:>6}  {kind:<15}{quantile(own, 0.5):>8.1f}{quantile(own, 0.99):>8.1f}"
                f"   {statistics.median(ratios(spans, kind)):.2f}"
            )


if __name__ == "__main__":
    main()
