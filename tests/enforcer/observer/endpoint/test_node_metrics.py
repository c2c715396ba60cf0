"""What is known of the node now, as metrics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from prometheus_client import generate_latest

from enforcer.observer.endpoint.pages import application
from enforcer.observer.process import Observer
from numakin.placement.model.cpuset import NumaSet
from tests.extender.running import reservation, whole_report
from tests.metrics import value


def test_members_that_are_let_out_are_counted(tmp_path: Path) -> None:
    observer = Observer(tmp_path)
    application(observer)
    out = replace(reservation("out", "0"), let_out=NumaSet.parse("0-1"))
    observer.mirror.reported(whole_report(1, [reservation("home", "0"), out]))
    assert value(generate_latest(observer.counters.registry).decode(), "numakin_enforcer_let_out_members") == 1
