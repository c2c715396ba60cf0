"""The workloads: a server, a client that loads it, and how to read the client's figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path

from numakin.placement.model.cpuset import CpuSet

BODY_BYTES = 16 << 10
"""Of each of nginx's answers: enough that copying it is part of the work."""

CONNECTIONS = 32
"""Of the client."""

MILLIS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3}


class BadFigures(ValueError):
    """The client's output does not hold the figures."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run. throughput: per second. latency: the 99th percentile in milliseconds; None when not reported."""

    throughput: float
    latency: float | None


@dataclass(frozen=True, slots=True)
class Workload:
    """server, client: command lines for a folder of their own, a port, their CPUs, and the client's seconds.

    needs: programs that must be installed.
    """

    name: str
    needs: tuple[str, ...]
    server: Callable[[Path, int, CpuSet], Sequence[str]]
    client: Callable[[int, CpuSet, float], Sequence[str]]
    figures: Callable[[str], Figures]


_NGINX = """\
daemon off; worker_processes {workers}; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile off; keepalive_requests 1000000000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port}; root {folder}; }}
}}
"""


def _nginx(folder: Path, port: int, cpus: CpuSet) -> Sequence[str]:
    (folder / "body.bin").write_bytes(b"x" * BODY_BYTES)
    folder.chmod(0o755)
    configuration = folder / "nginx.conf"
    configuration.write_text(_NGINX.format(workers=len(cpus), folder=folder, port=port))
    return ["nginx", "-p", str(folder), "-c", str(configuration), "-e", str(folder / "error.log")]


def _wrk(port: int, cpus: CpuSet, seconds: float) -> Sequence[str]:
    threads = min(len(cpus), CONNECTIONS)
    url = f"http://127.0.0.1:{port}/body.bin"
    return ["wrk", "--latency", "-t", str(threads), "-c", str(CONNECTIONS), "-d", f"{max(1, round(seconds))}s", url]


def _figure(text: str | None, what: str) -> float:
    """A number that can be compared. text: None where an optional group of an expression matched nothing."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        value = nan
    if not isfinite(value) or value < 0:
        raise BadFigures(f"the load's {what} is no number that can be compared: {text or ''!r}")
    return value


def wrk_figures(text: str) -> Figures:
    """Of wrk's output with --latency."""
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    tail = re.search(r"99%\s+([\d.]+)(us|ms|s|m)\b", text)
    errors = re.search(r"Socket errors: .*|Non-2xx or 3xx responses: \d+", text)
    throughput = _figure(rate[1], "throughput") if rate else 0.0
    if throughput == 0 or errors:
        raise BadFigures(f"wrk was not served: {errors[0] if errors else 'no requests in its output'}")
    return Figures(throughput, _figure(tail[1], "latency") * MILLIS[tail[2]] if tail else None)


def _redis(folder: Path, port: int, _cpus: CpuSet) -> Sequence[str]:
    return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
            "--dir", str(folder), "--daemonize", "no"]  # fmt: skip


REDIS_RATE = 30_000
"""Requests a second by which redis-benchmark's number of requests is chosen: it takes no seconds."""


def _redis_benchmark(port: int, cpus: CpuSet, seconds: float) -> Sequence[str]:
    requests = str(max(1_000, round(seconds * REDIS_RATE)))
    return ["redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "-t", "get", "-d", "1024", "-n", requests,
            "-c", str(CONNECTIONS), "--threads", str(min(len(cpus), 4)), "--csv"]  # fmt: skip


def redis_figures(text: str) -> Figures:
    """Of redis-benchmark's CSV: test, rps, average, minimum, p50, p95, p99, maximum."""
    rows = [[cell.strip('"') for cell in line.split(",")] for line in text.splitlines() if line.startswith('"GET"')]
    if not rows or len(rows[0]) < 7:
        raise BadFigures(f"redis-benchmark reported no figures: {text.strip()[:200]!r}")
    return Figures(_figure(rows[0][1], "throughput"), _figure(rows[0][6], "latency"))


PARSERS = {"wrk": wrk_figures, "redis-benchmark": redis_figures}
"""By the program whose output they read."""


def figures_by(throughput: str, latency: str) -> Callable[[str], Figures]:
    """Reads figures by expressions with one group each. latency: may be empty."""
    rate, tail = re.compile(throughput), re.compile(latency) if latency else None

    def figures(text: str) -> Figures:
        rate_match, tail_match = rate.search(text), tail.search(text) if tail else None
        if rate_match is None:
            raise BadFigures(f"the load's output holds nothing like {throughput!r}: {text.strip()[:200]!r}")
        late = _figure(tail_match[1], "latency") if tail_match else None
        return Figures(_figure(rate_match[1], "throughput"), late)

    return figures


def of_commands(server: Sequence[str], client: Sequence[str], throughput: str, latency: str) -> Workload:
    """The user's own: words in which {port}, {cpus} and {seconds} are replaced, and expressions as in `figures_by`."""

    def filled(arguments: Sequence[str], port: int, cpus: CpuSet, seconds: float) -> list[str]:
        values = {"{port}": str(port), "{cpus}": str(len(cpus)), "{seconds}": f"{seconds:g}"}
        return [_replaced(argument, values) for argument in arguments]

    return Workload(
        "your own",
        (server[0], client[0]),
        lambda _folder, port, cpus: filled(server, port, cpus, 0.0),
        lambda port, cpus, seconds: filled(client, port, cpus, seconds),
        figures_by(throughput, latency),
    )


def _replaced(argument: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        argument = argument.replace(name, value)
    return argument


WORKLOADS = {
    "nginx": Workload("wrk -> nginx", ("nginx", "wrk"), _nginx, _wrk, wrk_figures),
    "redis": Workload(
        "redis-benchmark -> redis", ("redis-server", "redis-benchmark"), _redis, _redis_benchmark, redis_figures
    ),
}
