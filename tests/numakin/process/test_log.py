"""Both programs write one line an event, in UTC, with the same keys; JSON keeps numbers numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from lab.standins.patience import PATIENCE_S

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from numakin.placement.model.cpuset import CpuSet
from numakin.process import log
log.set_up("info", sys.argv[1])
write = log.Log("hook")
write.debug("not at this level")
write.info("container pinned", pod="shop/web-1", cpus=CpuSet.parse("0-3"), gain=1.5, count=3, late=False, why=None)
write.warning("two\\nlines", names=["a", "b"], share=float("nan"))
try:
    raise ValueError("first\\nsecond")
except ValueError:
    write.exception("it failed", time="noon")
raise RuntimeError("nobody catches it")
"""


def lines(form: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, form],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE_S,
        check=False,
        env={"TZ": "Asia/Kolkata"},
    )
    assert run.returncode == 1
    return run.stderr.splitlines()


def test_json_has_one_object_a_line_with_its_types() -> None:
    pinned, two, failed, ended = map(json.loads, lines("json"))
    assert list(pinned) == ["time", "level", "logger", "event", "pod", "cpus", "gain", "count", "late", "why"]
    assert list(pinned.values())[1:] == ["info", "hook", "container pinned", "shop/web-1", "0-3", 1.5, 3, False, None]
    assert pinned["time"].endswith("Z")
    assert (two["level"], two["names"], two["share"]) == ("warning", ["a", "b"], "nan")
    assert (failed["event"], failed["time_"]) == ("it failed", "noon")
    assert failed["traceback"].endswith("ValueError: first\nsecond")
    assert ended["event"] == "ended by an exception"
    assert ended["traceback"].endswith("RuntimeError: nobody catches it")


def test_text_has_one_event_a_line_too() -> None:
    pinned, two, failed, ended = lines("text")
    assert pinned.partition(" ")[2] == (
        "INFO hook container pinned pod=shop/web-1 cpus=0-3 gain=1.5 count=3 late=False why=None"
    )
    assert " WARNING hook two lines names=" in two
    assert "ValueError: first\\nsecond" in failed
    assert "RuntimeError: nobody catches it" in ended


def test_times_are_utc_wherever_the_machine_is() -> None:
    here = subprocess.run(["date", "-u", "+%Y-%m-%dT%H"], capture_output=True, text=True, check=True).stdout.strip()
    received = json.loads(lines("json")[0])["time"]
    after = subprocess.run(["date", "-u", "+%Y-%m-%dT%H"], capture_output=True, text=True, check=True).stdout.strip()
    assert received[:13] in (here, after)
