"""What `top` and `doctor` print, where no terminal is too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from enforcer.cli import doctor, top
from enforcer.cli.findings import Finding
from enforcer.settings.config import Config
from numakin.process.standard_output import CUT_OFF


def test_top_shows_ipv6_peers(monkeypatch, capsys):
    edge = {"source": "[fd00::5]:8080", "target": "shop/cart", "kind": "tcp"} | dict.fromkeys(
        ("bytes_per_s", "messages_per_s", "weight"), 1.0
    )
    answer = {
        "collector": "replay", "unattributed_bytes": 0, "lost_bytes": 0, "unseen": [], "relays": [], "edges_in_all": 1,
        "edges": [edge],
    }  # fmt: skip
    monkeypatch.setattr(top, "get", lambda *_: answer)
    assert top.top("there:1", as_json=False) == 0
    assert "[fd00::5]:8080" in capsys.readouterr().out


@pytest.mark.parametrize(("grade", "sign"), [("good", "ok  "), ("note", "note"), ("bad", "bad ")])
def test_doctor_shows_its_signs_and_text_as_it_is(monkeypatch, capsys, grade, sign):
    monkeypatch.setattr(doctor, "examine", lambda _: [Finding("NRI", grade, "no socket at [/]/nri.sock")])
    doctor.doctor(Config(), as_json=False)
    assert capsys.readouterr().out == f"{sign} NRI      no socket at [/]/nri.sock\n"


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_a_reader_that_goes_away_is_told_by_the_exit_code_of_a_broken_pipe(form):
    """Not by the one of a bad finding. The pipe has no reader from the beginning."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "enforcer", "doctor", *form]
    with os.fdopen(writer, "wb") as gone:
        done = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (CUT_OFF, "")
