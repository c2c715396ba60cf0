"""The report stream's thread: it is of no use to be without, so it comes back, and is missed when it hangs."""

import threading
from collections.abc import Iterator
from queue import Queue

import grpc
import pytest

from extender.cluster import Cluster
from extender.reports.server import STALE_AFTER_S, Server
from extender.reports.session import SessionCallbacks
from extender.reports.streams import TOKENS_AT_ONCE, Identify
from lab.cluster.processes import listening
from lab.standins.patience import PATIENCE_S, until
from numakin.process.threads import Failure, Threads, worded
from numakin.wire import convert
from tests.clock import Clock
from tests.extender.running import Enforcer, machine, welcome, whole_report


class Running:
    def __init__(self, identify: Identify | None = None) -> None:
        self.clock, self.failures = Clock(), Queue[Failure]()
        self.threads = Threads(self.failures.put, self.clock)
        self.server = Server(Cluster(), SessionCallbacks(), "127.0.0.1:0", identify=identify, threads=self.threads)
        self.server.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}"


@pytest.fixture
def running() -> Iterator[Running]:
    made = Running()
    yield made
    made.server.stop()
    assert made.threads.standings() == ()


def welcomed(address: str) -> None:
    enforcer = Enforcer(address, "n1")
    assert enforcer.next() == welcome(resume=False)
    enforcer.close()


def test_a_loop_that_fails_is_told_and_its_port_opened_anew(running: Running) -> None:
    port = running.server.port
    welcomed(running.address)
    serving = running.server._serving
    serving.loop.call_soon_threadsafe(serving.loop.stop)
    assert running.failures.get(timeout=PATIENCE_S).thread == "reports"
    until(lambda: running.server._serving is not serving, "another loop")
    assert running.server.port == port
    until(lambda: listening(port), "its port")
    welcomed(running.address)


def test_a_loop_that_hangs_is_stale_and_essential(running: Running) -> None:
    let_go, held = threading.Event(), threading.Event()

    def hang() -> None:
        held.set()
        assert let_go.wait(PATIENCE_S)

    running.server._serving.call(hang)
    assert held.wait(PATIENCE_S)
    running.clock.now += STALE_AFTER_S + 1
    (stale,) = running.threads.stale()
    assert stale.essential
    assert worded([stale]) == "thread 'reports' has had no good round for 21 s"
    let_go.set()
    until(lambda: not running.threads.stale(), "its next beat")


def test_an_address_that_is_taken_is_told_at_the_start(running: Running) -> None:
    threads = Threads(running.failures.put)
    with pytest.raises(OSError, match=running.address):
        Server(Cluster(), SessionCallbacks(), running.address, threads=threads).start()
    until(lambda: not threads.standings(), "its end")


def test_enforcers_whose_tokens_the_api_server_is_slow_to_check_hold_up_none_that_is_here() -> None:
    let_go, asked = threading.Event(), Queue[str]()

    def checked(token: str) -> str:
        asked.put(token)
        assert token == "n1" or let_go.wait(PATIENCE_S)
        return token

    running = Running(checked)
    with grpc.insecure_channel(running.address) as channel:
        here = Enforcer(running.address, "n1", token="n1")
        assert here.next() == welcome(resume=False)
        for at in range(2 * TOKENS_AT_ONCE):
            Enforcer(running.address, "slow", token=f"slow-{at}", channel=channel)
        for _ in range(1 + TOKENS_AT_ONCE):
            asked.get(timeout=PATIENCE_S)
        here.send(machine=convert.machine_to(machine()))
        for generation in (1, 2):
            here.send(report=whole_report(generation))
            assert here.next().ack.generation == generation
        let_go.set()
        here.close()
    running.server.stop()
