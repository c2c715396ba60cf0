"""filter and prioritize as kube-scheduler waits for them, over HTTP, beside constant answers.

    python -m benchmarks.extender.over_http                            500 and 5,000 nodes
    python -m benchmarks.extender.over_http --nodes 500 --rounds 100 --json

Each round asks both verbs for one new pod of each kind, and the constant servers as well, in turn: ratios are of the
same round. One is our own server, the other, where gunicorn is installed (`pip install '.[bench]'`), a Flask handler
under gunicorn. Nodes report all the while only in `make simulate`; here they are silent.
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
from importlib.util import find_spec

from benchmarks.extender.populated import body

KINDS: Mapping[str, Mapping[str, str]] = {
    "not opted in": {},
    "opted in": {"group": "shop"},
    "exclusive CPUs": {"group": "shop", "cpus": "exclusive"},
    "refuse mode": {"group": "shop", "policy": "restricted"},
}
PAUSE_S = 0.002
"""Between the two calls, when kube-scheduler has its plugins score the nodes: 1.20 with 500 nodes, in 480 cycles, took
1.1 ms at least, more than 1.8 ms in nine of ten, 3 ms in the median.
"""

WARM = 3
"""Rounds before those that count."""

Spans = dict[str, list[float]]


OWN, FLASK = "our own server", "Flask under gunicorn"
"""Whose constant answers they are."""

FLOORS = (OWN, FLASK) if find_spec("gunicorn") else (OWN,)


@contextmanager
def served(nodes: int, *options: str, by: str = "server") -> Iterator[http.client.HTTPConnection]:
    command = [sys.executable, "-m", f"benchmarks.extender.{by}", str(nodes), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["http"]
            connection = http.client.HTTPConnection(address, timeout=60)
            yield connection
            connection.close()
        finally:
            process.kill()


def asked(connection: http.client.HTTPConnection, request: bytes, pause_s: float) -> float:
    """Seconds for both verbs, without the pause between them."""
    waited_s = answered(connection, "filter", request)
    time.sleep(pause_s)
    return waited_s + answered(connection, "prioritize", request)


def answered(connection: http.client.HTTPConnection, verb: str, request: bytes) -> float:
    """Seconds until the whole answer is there."""
    begin = time.perf_counter()
    connection.request("POST", f"/{verb}", request, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{verb}: HTTP {answer.status}")
    return time.perf_counter() - begin


def measured(nodes: int, rounds: int, pause_s: float = PAUSE_S) -> Spans:
    """Milliseconds by kind, round by round."""
    spans: Spans = defaultdict(list)
    with ExitStack() as stack:
        floors = {OWN: stack.enter_context(served(nodes, "--constant"))}
        if FLASK in FLOORS:
            floors[FLASK] = stack.enter_context(served(nodes, by="constant_flask"))
        numakin, refusing = stack.enter_context(served(nodes)), stack.enter_context(served(nodes, "--refuse"))
        for number in range(WARM + rounds):
            for kind, keys in KINDS.items():
                request = body(f"{kind.replace(' ', '-').lower()}-{number}", nodes, **keys)
                for floor, constant in floors.items():
                    spans[f"{floor} beside {kind}"].append(1000 * asked(constant, request, pause_s))
                spans[kind].append(1000 * asked(refusing if "policy" in keys else numakin, request, pause_s))
    return {kind: values[WARM:] for kind, values in spans.items()}


def ratios(spans: Spans, kind: str, floor: str = OWN) -> list[float]:
    return [own / least for own, least in zip(spans[kind], spans[f"{floor} beside {kind}"], strict=True)]


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.extender.over_http", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 5000], help="nodes offered in one call")
    parser.add_argument("--rounds", type=int, default=200, help="pods of each kind (default: %(default)s)")
    parser.add_argument(
        "--pause", type=float, default=1000 * PAUSE_S, metavar="MS", help="between the two calls (default: %(default)g)"
    )
    parser.add_argument("--json", action="store_true", help="all spans, for a program")
    options = parser.parse_args()
    results = {nodes: measured(nodes, options.rounds, options.pause / 1000) for nodes in options.nodes}
    if options.json:
        print(json.dumps(results))
        return
    print(f"{'nodes':>6}  {'pod':<15}{'p50 ms':>8}{'p99 ms':>8}   beside a constant answer of {', '.join(FLOORS)}")
    for nodes, spans in results.items():
        for kind in KINDS:
            own = spans[kind]
            print(
                f"{nodes:>6}  {kind:<15}{quantile(own, 0.5):>8.1f}{quantile(own, 0.99):>8.1f}"
                f"   {', '.join(f'{statistics.median(ratios(spans, kind, floor)):.2f}' for floor in FLOORS)}"
            )


if __name__ == "__main__":
    main()
