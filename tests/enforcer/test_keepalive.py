"""An end of the report stream that hangs is found by pings, though its connection stays open and its kernel answers."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

import pytest

from enforcer.local import report_differences
from enforcer.report.backlog import ReportBacklog
from enforcer.report.mirror import Mirror
from enforcer.report.stream import Endpoint, ReportStream
from extender.cluster import Cluster
from extender.reports.server import Server
from extender.reports.session import SessionCallbacks
from lab.standins.patience import PATIENCE_S, until
from numakin.placement.state.occupancy import Occupancy
from numakin.wire import convert
from numakin.wire import local_pb2 as local
from numakin.wire.keepalive import LEAST_RECEIVED_MS, Keepalive
from tests.extender.running import Extender, machine, running
from tests.supervised import threads

QUICK = Keepalive(every_s=LEAST_RECEIVED_MS / 1000 + 1, within_s=2)


@pytest.fixture
def extender(tmp_path: Path) -> Iterator[Extender]:
    with running(tmp_path) as made:
        yield made


@pytest.fixture
def stream(extender: Extender) -> Iterator[ReportStream]:
    mirror = Mirror()
    mirror.started(local.Start(node="n1", session="s", machine=convert.machine_to(machine())))
    mirror.reported(
        report_differences.report(None, report_differences.ReportedNode(Occupancy(generation=1), registered=True))
    )
    endpoint = Endpoint(extender.program.grpc, keepalive=QUICK)
    made = ReportStream(
        endpoint, ReportBacklog(mirror), Lock(), lambda _expect: None, version="1", heartbeat_s=0.5, threads=threads()
    )
    made.start()
    until(lambda: made.connected, "a stream")
    yield made
    made.stop(PATIENCE_S)


def test_an_extender_that_hangs_is_found(extender: Extender, stream: ReportStream) -> None:
    os.kill(extender.program.pid, signal.SIGSTOP)
    try:
        until(lambda: not stream.connected, "the stream's end", PATIENCE_S)
    finally:
        os.kill(extender.program.pid, signal.SIGCONT)
    until(lambda: stream.connected, "a stream again")


HANGING = """
import sys
from tests.extender.running import Enforcer, machine
enforcer = Enforcer(sys.argv[1], "n1")
enforcer.report(machine())
print("reported", flush=True)
sys.stdin.read()
"""


def test_an_enforcer_that_hangs_is_found() -> None:
    gone: list[str] = []

    class Watched(Cluster):
        def disconnected(self, node: str) -> None:
            super().disconnected(node)
            gone.append(node)

    server = Server(Watched(), SessionCallbacks(), "127.0.0.1:0", threads=threads(), keepalive=QUICK)
    server.start()
    command = [sys.executable, "-c", HANGING, f"127.0.0.1:{server.port}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as enforcer:
        assert enforcer.stdout.readline() == b"reported\n"
        enforcer.send_signal(signal.SIGSTOP)
        try:
            until(lambda: gone == ["n1"], "the stream's end", PATIENCE_S)
        finally:
            enforcer.kill()
    server.stop()
