"""What kube-scheduler waits for while somebody floods its port with connections.

    python -m benchmarks.extender.flood                     500 nodes, 1,000 connections, TLS as in manifests/base
    python -m benchmarks.extender.flood --plain             without TLS
    python -m benchmarks.extender.flood --blocks 20 --json

A process opens 1,000 connections from 40 addresses, sends on each the first half of a handshake (without TLS: of a
request), holds them for half a second, closes them and begins again. Quiet and flooded blocks take turns on the
connection that kube-scheduler keeps, so that both meet the same machine; the flood's own processor time is the
machine's too.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.extender.over_http import PAUSE_S, WARM, asked, quantile, served
from benchmarks.extender.populated import body
from extender.kube.tls import authorities

CONNECTIONS, ADDRESSES = 1000, 40
HELD_S = 0.5
HALF_A_REQUEST = b"POST /prioritize HTTP/1.1\r\nHost: x\r\nContent-Le"
HOST = "127.0.0.1"

BLOCK_S = 4.0
"""Length of a block: several times the flood's opening, holding and closing. Each pod is asked about by both verbs."""

PODS = 50
"""Asked about again and again: none is bound here, and each that waits makes the next one's answer a little longer."""

SETTLED_S = 0.5
"""Between a flood's end and a quiet block: what the closing of its connections still costs is no quiet block's."""


def half_a_handshake() -> bytes:
    """What a TLS client says first: for it the server computes a key and signs."""
    outgoing = ssl.MemoryBIO()
    stranger = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=HOST)
    with suppress(ssl.SSLWantReadError):
        stranger.do_handshake()
    return outgoing.read()


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


def measured(nodes: int, blocks: int, *, plain: bool) -> dict[str, list[float]]:
    """Milliseconds for both verbs, of all rounds without and with the flood."""
    spans: dict[str, list[float]] = {"quiet": [], "flooded": []}
    numbers = itertools.cycle(range(PODS))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        context = None if plain else certified(folder)
        connection = stack.enter_context(served(nodes, *(() if plain else ("--tls", str(folder)))))
        address = f"{connection.host}:{connection.port}"
        if context is not None:
            connection = http.client.HTTPSConnection(address, timeout=60, context=context)

        def once() -> float:
            return 1000 * asked(connection, body(f"pod-{next(numbers)}", nodes, group="shop"), PAUSE_S)

        def block() -> list[float]:
            until = time.monotonic() + BLOCK_S
            spent = []
            while time.monotonic() < until:
                spent.append(once())
            return spent

        for _ in range(WARM):
            once()
        for _ in range(blocks):
            spans["quiet"] += block()
            with flooded(address, *(("--plain",) if plain else ())):
                spans["flooded"] += block()
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
        print(f"{kind:<8} p50 {quantile(values, 0.5):5.1f} ms   p99 {quantile(values, 0.99):5.1f} ms   n {len(values)}")
    ratio = quantile(spans["flooded"], 0.99) / quantile(spans["quiet"], 0.99)
    print(f"p99 with 1,000 connections beside without: {ratio:.2f}")


if __name__ == "__main__":
    main()
