"""What kube-scheduler waits for while somebody floods its port with connections.

    python -m benchmarks.extender.flood                     500 nodes, 1,000 connections
    python -m benchmarks.extender.flood --blocks 10 --json

A process opens 1,000 connections from 40 addresses, sends half a request on each, holds them for half a second, closes
them and begins again. Quiet and flooded blocks take turns on the connection that kube-scheduler keeps, so that both
meet the same machine; the flood's own processor time is the machine's too.
"""

from __future__ import annotations

import argparse
import json
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from benchmarks.extender.over_http import PAUSE_S, WARM, asked, quantile, served
from benchmarks.extender.populated import body

CONNECTIONS, ADDRESSES = 1000, 40
HELD_S = 0.5
HALF_A_REQUEST = b"POST /prioritize HTTP/1.1\r\nHost: x\r\nContent-Le"
ROUNDS = 50
"""Pods in a block, each asked about by both verbs."""


def connected(target: tuple[str, int], number: int) -> socket.socket:
    made = socket.create_connection(target, 60, (f"127.1.0.{1 + number % ADDRESSES}", 0))
    with suppress(OSError):  # cut off at once
        made.sendall(HALF_A_REQUEST)
    return made


def flood(address: str) -> None:
    """Until it is killed; says when the first connections are open, those included that the port does not take."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    host, _, port = address.rpartition(":")
    while True:
        opened = []
        for number in range(CONNECTIONS):
            with suppress(OSError):
                opened.append(connected((host, int(port)), number))
        print(len(opened), flush=True)
        time.sleep(HELD_S)
        for each in opened:
            each.close()


@contextmanager
def flooded(address: str) -> Iterator[None]:
    command = [sys.executable, "-m", "benchmarks.extender.flood", "--attack", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


def measured(nodes: int, blocks: int) -> dict[str, list[float]]:
    """Milliseconds for both verbs, of all rounds without and with the flood."""
    spans: dict[str, list[float]] = {"quiet": [], "flooded": []}
    numbers = iter(range(WARM + 2 * blocks * ROUNDS))
    with served(nodes) as connection:

        def once() -> float:
            return 1000 * asked(connection, body(f"pod-{next(numbers)}", nodes, group="shop"), PAUSE_S)

        for _ in range(WARM):
            once()
        for _ in range(blocks):
            spans["quiet"] += [once() for _ in range(ROUNDS)]
            with flooded(f"{connection.host}:{connection.port}"):
                spans["flooded"] += [once() for _ in range(ROUNDS)]
    return spans


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extender.flood", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=500, help="offered in one call (default: %(default)s)")
    parser.add_argument("--blocks", type=int, default=10, help="of each kind, 50 pods each (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="all spans, for a program")
    parser.add_argument("--attack", metavar="HOST:PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        flood(options.attack)
    spans = measured(options.nodes, options.blocks)
    if options.json:
        print(json.dumps(spans))
        return
    for kind, values in spans.items():
        print(f"{kind:<8} p50 {quantile(values, 0.5):5.1f} ms   p99 {quantile(values, 0.99):5.1f} ms   n {len(values)}")
    ratio = quantile(spans["flooded"], 0.99) / quantile(spans["quiet"], 0.99)
    print(f"p99 with 1,000 connections beside without: {ratio:.2f}")


if __name__ == "__main__":
    main()
