"""The loads: each runs in processes of its own on one CPU and measures how much CPU time one unit of work took.

Client and server are in cgroups of their own, as containers are: the root cgroup's traffic is counted otherwise.
CPU time of both ends on one CPU, since wall-clock time of two processes on two CPUs depends more on where the scheduler
put them than on probes.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from enforcer.observe.collectors.chain import cgroup_root
from lab.standins.patience import until

NGINX = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port}; location / {{ return 200 "{body}"; }} }}
}}
"""
PORT = 18080
"""Below the ephemeral range, as servers' ports are."""
BODY = 1024
CONNECTIONS = 16
MESSAGE = 64
BLOCK = 1 << 16
DEADLINE_S = 30.0


def cgroup(name: str) -> Path:
    root = cgroup_root()
    if root is None:
        raise SystemExit("cgroup v2 is not mounted")
    return root / f"numakin-benchmark-{name}"


@contextmanager
def cgroups() -> Iterator[None]:
    """The cgroups of client and server, as long as the context."""
    for name in ("client", "server"):
        cgroup(name).mkdir(exist_ok=True)
    try:
        yield
    finally:
        for name in ("client", "server"):
            cgroup(name).rmdir()


def enter(name: str) -> None:
    (cgroup(name) / "cgroup.procs").write_text("0")


def cpu() -> int:
    """The last CPU that this process may use; the benchmark itself keeps off it where there is another."""
    return max(os.sched_getaffinity(0))


def forked(seconds: float, serve: Callable[[socket.socket], None], ask: Callable[[socket.socket], int]) -> float:
    """CPU seconds for each unit: `ask` for so long in one process, `serve` in another, over TCP on loopback."""
    ready, begin = os.pipe()
    child = os.fork()
    if child == 0:
        enter("server")
        # A socket belongs to the cgroup that it was made in.
        listener = socket.create_server(("127.0.0.1", PORT))
        os.write(begin, b"x")
        stream, _ = listener.accept()
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        serve(stream)
        os._exit(0)
    os.read(ready, 1)
    stream = socket.create_connection(("127.0.0.1", PORT))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    begun, deadline, units = time.process_time(), time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        units += ask(stream)
    own = time.process_time() - begun
    stream.close()
    _, _, usage = os.wait4(child, 0)
    return (own + usage.ru_utime + usage.ru_stime) / units


def pingpong(seconds: float) -> float:
    """64 bytes there and back; the unit is a round trip."""
    message = bytes(MESSAGE)

    def serve(stream: socket.socket) -> None:
        receive, send = stream.recv, stream.send
        while receive(MESSAGE):
            send(message)

    def ask(stream: socket.socket) -> int:
        receive, send = stream.recv, stream.send
        for _ in range(1000):
            send(message)
            receive(MESSAGE)
        return 1000

    return forked(seconds, serve, ask)


def bulk(seconds: float) -> float:
    """64 KiB writes one way; the unit is a write."""
    block = bytes(BLOCK)

    def serve(stream: socket.socket) -> None:
        into = bytearray(BLOCK)
        while stream.recv_into(into):
            pass

    def ask(stream: socket.socket) -> int:
        for _ in range(100):
            stream.sendall(block)
        return 100

    return forked(seconds, serve, ask)


@contextmanager
def served(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A server with one busy thread, once it accepts connections; this process goes on as client."""
    enter("server")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    enter("client")
    try:
        until(listens, f"{command[0]} to listen", DEADLINE_S)
        yield process
    finally:
        process.terminate()
        process.wait()


def listens() -> bool:
    try:
        socket.create_connection(("127.0.0.1", PORT), 1).close()
    except ConnectionRefusedError:
        return False
    return True


@contextmanager
def nginx() -> Iterator[subprocess.Popen[bytes]]:
    """It answers every request with a kilobyte."""
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "nginx.conf"
        configuration.write_text(NGINX.format(folder=folder, port=PORT, body="x" * BODY))
        with served(["nginx", "-p", folder, "-c", str(configuration)]) as process:
            yield process


def web(seconds: float) -> float:
    """wrk sends requests to nginx; the unit is a request."""
    with nginx() as server:
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", f"http://127.0.0.1:{PORT}/"]
        before = on_cpu(server.pid)
        wrk = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert wrk.stdout
        output = wrk.stdout.read().decode()
        _, status, usage = os.wait4(wrk.pid, 0)
        wrk.stdout.close()
        wrk.returncode = os.waitstatus_to_exitcode(status)
        requests = re.search(r"(\d+) requests in", output)
        if wrk.returncode or not requests:
            raise SystemExit(f"wrk: {output}")
        used = on_cpu(server.pid) - before + usage.ru_utime + usage.ru_stime
        return float(used / int(requests[1]))


def database(seconds: float) -> float:
    """redis-benchmark sends GETs to redis, for so long; the unit is a command."""
    server = ["redis-server", "--port", str(PORT), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    load = ["redis-benchmark", "-p", str(PORT), "-c", str(CONNECTIONS), "-t", "get", "-l", "-q"]
    with served(server) as redis:
        used, commands = on_cpu(redis.pid), commands_processed()
        client = subprocess.Popen(load, stdout=subprocess.DEVNULL)
        time.sleep(seconds)
        client.terminate()
        _, status, usage = os.wait4(client.pid, 0)
        client.returncode = os.waitstatus_to_exitcode(status)
        used, commands = on_cpu(redis.pid) - used, commands_processed() - commands
        if client.returncode != -signal.SIGTERM:
            raise SystemExit(f"redis-benchmark: status {client.returncode}")
        return float((used + usage.ru_utime + usage.ru_stime) / commands)


def commands_processed() -> int:
    """By the redis that runs, since its start."""
    with socket.create_connection(("127.0.0.1", PORT)) as stream:
        stream.sendall(b"INFO stats\r\n")
        answer = b""
        while (found := re.search(rb"total_commands_processed:(\d+)\r\n", answer)) is None:
            if not (more := stream.recv(1 << 16)):
                raise SystemExit(f"redis: {answer!r}")
            answer += more
    return int(found[1])


def on_cpu(pid: int) -> float:
    """CPU seconds of a process with one thread: first field of schedstat, in nanoseconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


LOADS: dict[str, Callable[[float], float]] = {
    "wrk-nginx": web,
    "redis": database,
    "ping-pong": pingpong,
    "bulk": bulk,
}

PROGRAMS = {"wrk-nginx": ("nginx", "wrk"), "redis": ("redis-server", "redis-benchmark")}
"""What a load runs, where it is not Python."""


def lacking(load: str) -> list[str]:
    """The programs that this machine does not have."""
    return [program for program in PROGRAMS.get(load, ()) if shutil.which(program) is None]


def run(name: str, seconds: float) -> float:
    """CPU seconds for each unit of a load, run in a fresh interpreter pinned to one CPU."""
    command = [sys.executable, "-m", "benchmarks.observe.loads", name, str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return float(json.loads(done.stdout))


if __name__ == "__main__":
    os.sched_setaffinity(0, {cpu()})
    enter("client")
    print(json.dumps(LOADS[sys.argv[1]](float(sys.argv[2]))))
