"""A thread that gets nowhere is named wherever people look."""

import re
import threading
from pathlib import Path

import pytest

from enforcer.observer.endpoint.attachment import SILENT_S, Attachment
from enforcer.observer.endpoint.pages import application
from enforcer.observer.process import Observer
from lab.standins.patience import PATIENCE_S, until
from numakin.wire import local_pb2 as local
from tests.enforcer.observer.endpoint.served import served
from tests.enforcer.running import Enforcer


@pytest.fixture
def observer(tmp_path: Path) -> Observer:
    """Registered, with one thread that hangs."""
    made, let_go = Observer(tmp_path), threading.Event()
    made.hook_present = made.mirror.registered = True
    hanging = made.threads.thread("traffic", let_go.wait, stale_after_s=0)
    hanging.start()
    yield made
    hanging.stop()
    let_go.set()
    hanging.stop(PATIENCE_S)


def test_readyz_names_the_thread_and_stays_ready(enforcer: Enforcer, observer: Observer) -> None:
    with served(enforcer, application(observer)):
        until(lambda: enforcer.get("/healthz")[0] == 200, "the port is served")
        status, text = enforcer.get("/readyz")
    assert status == 200
    degraded = "registered with the container runtime; degraded: thread 'traffic' has had no good round for "
    assert re.match(re.escape(degraded) + r"\d+ s", text)


def test_metrics_name_the_thread(enforcer: Enforcer, observer: Observer) -> None:
    with served(enforcer, application(observer)):
        until(lambda: enforcer.get("/healthz")[0] == 200, "the port is served")
        _, text = enforcer.get("/metrics")
    assert 'numakin_enforcer_thread_stale{thread="traffic"} 1.0' in text
    assert 'numakin_enforcer_thread_failures_total{thread="traffic"} 0.0' in text
    assert re.search(r'^numakin_enforcer_thread_seconds_since_success{thread="traffic"} \d+\.', text, re.MULTILINE)


def test_a_hook_that_says_nothing_any_more_is_not_ready(tmp_path: Path) -> None:
    now = [0.0]
    made = Observer(tmp_path)
    made.hook_present = made.mirror.registered = True
    made.attachment = Attachment(lambda: now[0])
    made.attachment.received(local.Attachment(confirmed_seconds_ago=2))
    now[0] = SILENT_S
    assert made.ready == (True, f"registered with the container runtime, confirmed {SILENT_S + 2:.0f} s ago")
    now[0] += 1
    assert made.ready == (False, f"the hook process has reported nothing for {SILENT_S + 1:.0f} s")
