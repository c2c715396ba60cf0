"""`release` where the runtime takes its time, as with hundreds of containers."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from enforcer.cli import status
from enforcer.local import control
from numakin.kubectl.commands import release
from numakin.wire import local_pb2 as local


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "hook.sock"))
        listening.listen()
        yield listening


def test_it_waits_longer_than_for_other_answers(monkeypatch, capsys, tmp_path, hook):
    monkeypatch.setattr(status, "PATIENCE_S", 0.05)

    def answer() -> None:
        connection, _ = hook.accept()
        text = json.dumps({"released": 3, "failed": [], "error": ""})
        threading.Event().wait(0.3)
        connection.sendall(control.framed(local.FromHook(status=local.Status(json=text))))
        connection.close()

    threading.Thread(target=answer, daemon=True).start()
    assert status.release(tmp_path) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.startswith("released 3 containers")


@pytest.mark.usefixtures("hook")
def test_what_takes_too_long_is_called_unfinished(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(status, "RELEASE_S", 0.1)
    assert status.release(tmp_path) == 1
    assert capsys.readouterr().err.startswith("numakin-enforcer: not finished within 0 s; it goes on: see")


@pytest.mark.usefixtures("hook")
def test_an_enforcer_that_does_not_answer_is_not_called_absent(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(status, "PATIENCE_S", 0.1)
    assert status.status(tmp_path, as_json=False) == 1
    assert "has not answered within 0 s" in capsys.readouterr().err


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(("command", "said"), [
    ("release", "numakin-enforcer: not waited for; it goes on: see `numakin-enforcer status`, or release again\n"),
    ("status", ""),
])  # fmt: skip
def test_an_interrupt_is_no_fault_of_ours(tmp_path, hook, command, said):
    words = [sys.executable, "-m", "enforcer", command, f"--run-dir={tmp_path}"]
    # Tests that run in the background are started with SIGINT ignored, and so would it be.
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,  # noqa: PLW1509
    ) as asking:
        connection, _ = hook.accept()
        with connection:
            assert connection.recv(1)
            asking.send_signal(signal.SIGINT)
            out, err = asking.communicate()
    assert (asking.returncode, out, err) == (130, "", said)


def test_kubectl_numakin_waits_longer_than_the_program_in_the_pod():
    assert release.RELEASE_S > status.RELEASE_S
