"""An observer that could not start all of its threads at once starts them later."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from enforcer.observer.process import Observer
from enforcer.settings.config import Config
from lab.standins.patience import PATIENCE_S
from numakin.wire import convert
from numakin.wire import local_pb2 as local
from tests.extender.running import machine


def test_a_thread_that_the_system_did_not_start_is_started_at_the_hooks_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where there is no memory for its stack."""
    observer, start = Observer(tmp_path), threading.Thread.start
    config = Config(extender="127.0.0.1:1", metrics_listen="", observe="off", podresources_socket="off", mode="bypass")
    message = local.FromHook(
        start=local.Start(session="s", config=config.to_json(), machine=convert.machine_to(machine()))
    )

    def refused(thread: threading.Thread) -> None:
        if thread.name == "replicas":
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as no_memory:
        no_memory.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            observer._received(message)
    assert "replicas" not in {standing.thread for standing in observer.threads.standings()}
    observer._received(message)
    assert "replicas" in {standing.thread for standing in observer.threads.standings()}
    for part in observer._parts:
        part.stop(PATIENCE_S)
