"""What `top`, `status` and `doctor` print, where no terminal is too."""

from __future__ import annotations

from pathlib import Path

import pytest

from enforcer.cli import doctor, status, top
from enforcer.settings.config import Config


def container(**more: str) -> dict:
    return {"pod": "shop/cart", "container": "app", "numa_nodes": "0", "cpus": "0-7", "mems": "0", "reasons": []} | more


def answered(*containers: dict) -> dict:
    return {
        "node": "node-1", "generation": 1, "registered": True, "confirmed_seconds_ago": None, "released": False,
        "containers": containers, "observer": {},
    }  # fmt: skip


def test_status_shows_text_as_it_is(monkeypatch, capsys):
    odd = container(container="[/]", reasons=["cpus.numakin.io: '[/]' is not allowed"])
    monkeypatch.setattr(status, "ask", lambda _: answered(odd))
    assert status.status(Path("/run"), as_json=False) == 0
    out = capsys.readouterr().out
    assert "shop/cart" in out
    assert "shop/cart [/]: cpus.numakin.io: '[/]' is not allowed" in out


def test_status_crops_nothing_where_no_terminal_is(monkeypatch, capsys):
    """Also where it is longer than any terminal."""
    pod, cpus = "shop/" + "cart-" * 20, ",".join(map(str, range(0, 400, 2)))
    monkeypatch.setattr(status, "ask", lambda _: answered(container(pod=pod), container(cpus=cpus)))
    status.status(Path("/run"), as_json=False)
    out = capsys.readouterr().out
    assert "…" not in out
    assert pod in out
    cells = [line.split("│")[4].strip() for line in out.splitlines() if line.count("│") == 6]
    assert cpus in "".join(cells)


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
    monkeypatch.setattr(doctor, "examine", lambda _: [doctor.Finding("NRI", grade, "no socket at [/]/nri.sock")])
    doctor.doctor(Config(), as_json=False)
    assert capsys.readouterr().out == f"{sign} NRI      no socket at [/]/nri.sock\n"
