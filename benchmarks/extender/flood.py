"""What kube-scheduler waits for while somebody floods its port with connections.

    python -m benchmarks.extender.flood                     500 nodes, 1,000 connections, TLS as in manifests/base
    python -m benchmarks.extender.flood --plain             without TLS
    python -m benchmarks.extender.flood --blocks 20 --json

A process opens 1,000 connections from 40 addresses, sends on each the first half of a handshake (without TLS: of a
request), holds them for half a second, closes them and begins again. Quiet and flooded blocks take turns on the
connection that kube-scheduler keeps, so that both meet the same machine; the flood's own processor time is the
machine's too. After each flooded block kube-scheduler comes anew: connection, handshake and one call.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.extender.over_http import PAUSE_S, WARM, answered, asked, quantile, served
from benchmarks.extender.populated import body
from extender.kube.tls import authorities
from lab.standins.stranger import HALF_A_REQUEST, half_a_handshake

CONNECTIONS, ADDRESSES = 1000, 40
HELD_S = 0.5
HOST = "127.0.0.1"

BLOCK_S = 4.0
"""Length of a block: several times the flood's opening, holding and closing. Each pod is asked about by both verbs."""

PODS = 50
"""Asked about again and again: none is bound here, and each that waits makes the next one's answer a little longer."""

SETTLED_S = 0.5
"""Between a flood's end and a quiet block: what the closing of its connections still costs is no quiet block's."""


def connected(target: tuple[str, int], number: int, first: bytes) -> socket.socket:
    made = socket.create_connection(target, 60, (f"127.1.0.{1 + number % ADDRESSES}", 0))
    with suppress(OSError):  # cut off at once
        made.sendall(first)
    return made


def flood(address: str, first: bytes) -> None:
    """Until it is killed; says when the first connections are open, those included that the port does not take."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    host, _, port = address.rpartition(":")
    while True:
        opened = []
        for number in range(CONNECTIONS):
            with suppress(OSError):
                opened.append(connected((host, int(port)), number, first))
        print(len(opened), flush=True)
        time.sleep(HELD_S)
        for each in opened:
            each.close()


@contextmanager
def flooded(address: str, *options: str) -> Iterator[None]:
    command = [sys.executable, "-m", "benchmarks.extender.flood", "--attack", address, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


def certified(folder: Path) -> ssl.SSLContext:
    """Writes what the server's `--tls` reads; returns what kube-scheduler connects by."""
    now = datetime.now(UTC)
    authority = authorities.signer(authorities.renewed((), now), now)
    server = authorities.server_pair(authority, [HOST], now)
    client = authorities.client_pair(authority, authorities.SCHEDULER, now)
    (folder / "ca.crt").write_bytes(authorities.bundle([authority]))
    (folder / "tls.crt").write_bytes(server.cert)
    (folder / "tls.key").write_bytes(server.key)
    (folder / "client.pem").write_bytes(client.cert + client.key)
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(folder / "client.pem")
    return context


class Caller:
    """kube-scheduler: offers `nodes` nodes for one pod after the other. context: None without TLS."""

    def __init__(self, address: str, nodes: int, context: ssl.SSLContext | None) -> None:
        self._address, self._nodes, self._context = address, nodes, context
        self._pods = itertools.cycle(range(PODS))
        self._kept = self._connection()

    def asks(self) -> float:
        """Milliseconds for both verbs on the connection that is kept."""
        return 1000 * asked(self._kept, self._next(), PAUSE_S)

    def comes_anew(self) -> float:
        """Milliseconds from the beginning of a new connection to the answer to its first call."""
        begin = time.perf_counter()
        with closing(self._connection()) as connection:
            answered(connection, "filter", self._next())
        return 1000 * (time.perf_counter() - begin)

    def _next(self) -> bytes:
        return body(f"pod-{next(self._pods)}", self._nodes, group="shop")

    def _connection(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._address, timeout=60)
        return http.client.HTTPSConnection(self._address, timeout=60, context=self._context)


def block(once: Callable[[], float]) -> list[float]:
    until = time.monotonic() + BLOCK_S
    spans = []
    while time.monotonic() < until:
        spans.append(once())
    return spans


def measured(nodes: int, blocks: int, *, plain: bool) -> dict[str, list[float]]:
    """Milliseconds of all rounds: for both verbs without and with the flood, and of newcomers with it."""
    spans: dict[str, list[float]] = {"quiet": [], "flooded": [], "newcomer": []}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        context = None if plain else certified(folder)
        port = stack.enter_context(served(nodes, *(() if plain else ("--tls", str(folder)))))
        address = f"{port.host}:{port.port}"
        caller = Caller(address, nodes, context)
        for _ in range(WARM):
            caller.asks()
        for _ in range(blocks):
            spans["quiet"] += block(caller.asks)
            with flooded(address, *(("--plain",) if plain else ())):
                spans["flooded"] += block(caller.asks)
                spans["newcomer"] += block(caller.comes_anew)
            time.sleep(SETTLED_S)
    return spans


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extender.flood", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=500, help="offered in one call (default: %(default)s)")
    parser.add_argument("--blocks", type=int, default=5, help="of each kind, 4 s each (default: %(default)s)")
    parser.add_argument("--plain", action="store_true", help="HTTP without TLS")
    parser.add_argument("--json", action="store_true", help="all spans, for a program")
    parser.add_argument("--attack", metavar="HOST:PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        flood(options.attack, HALF_A_REQUEST if options.plain else half_a_handshake())
    spans = measured(options.nodes, options.blocks, plain=options.plain)
    if options.json:
        print(json.dumps(spans))
        return
    for kind, values in spans.items():
        print(
            f"{kind:<8} p50 {quantile(values, 0.5):5.1f} ms   p99 {quantile(values, 0.99):5.1f} ms   "
            f"most {max(values):5.0f} ms   n {len(values)}"
        )
    ratio = quantile(spans["flooded"], 0.99) / quantile(spans["quiet"], 0.99)
    print(f"p99 with 1,000 connections beside without: {ratio:.2f}")


if __name__ == "__main__":
    main()
