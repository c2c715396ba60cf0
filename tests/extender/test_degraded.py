"""What an extender says of itself while one of its threads gets nowhere."""

import threading
from collections.abc import Iterator

import pytest

from extender.config import load
from extender.main import Program
from lab.standins.patience import PATIENCE_S
from tests.clock import Clock


@pytest.fixture
def program() -> Program:
    made = Program(load(["--no-kube"], {}))
    made._missing = ""
    made.gate = type("Over", (), {"missing": lambda _self: "", "unreported": lambda _self: ()})()
    return made


@pytest.fixture(params=[False, True])
def essential(program: Program, request: pytest.FixtureRequest) -> Iterator[bool]:
    let_go = threading.Event()
    program.threads.clock = clock = Clock()
    thread = program.threads.thread("lease", let_go.wait, stale_after_s=0, essential=request.param)
    thread.start()
    clock.now += 0.25
    yield request.param
    thread.stop()
    let_go.set()
    thread.stop(PATIENCE_S)


def test_readyz_is_ok_while_all_threads_are(program: Program) -> None:
    answer = program.app().test_client().get("/readyz")
    assert (answer.status_code, answer.text) == (200, "ok\n")


def test_readyz_names_the_thread_and_says_no_where_it_is_essential(program: Program, *, essential: bool) -> None:
    answer = program.app().test_client().get("/readyz")
    named = "thread 'lease' has had no good round for 0 s"
    assert answer.status_code == (503 if essential else 200)
    assert answer.text == (f"{named}\n" if essential else f"ok; degraded: {named}\n")


@pytest.mark.usefixtures("essential")
def test_metrics_name_the_thread(program: Program) -> None:
    text = program.app().test_client().get("/metrics").text
    assert 'numakin_extender_thread_stale{thread="lease"} 1.0' in text
    assert 'numakin_extender_thread_failures_total{thread="lease"} 0.0' in text
    assert 'numakin_extender_thread_seconds_since_success{thread="lease"} 0.' in text
