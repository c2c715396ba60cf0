"""A node whose enforcer is not well: the page says what is wrong, and what to do."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from numakin.wire import report_pb2 as pb
from tests.extender.running import Extender, machine

WELL = pb.ThreadHealth(name="stream 10.0.0.1:8081", since_success_s=1)
STUCK = pb.ThreadHealth(name="census", since_success_s=70, stale=True, failures=3, error="OSError: no such file")


def test_its_collector_and_threads_are_shown_with_what_to_do(extender: Extender, page: Page) -> None:
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    health = pb.Health(collector="none", runtime="registered, confirmed 3 s ago", threads=[WELL, STUCK])
    enforcer.send(heartbeat=pb.Heartbeat(generation=1, health=health))
    page.goto(f"http://{extender.web_address}/#view=nodes&node=n1")
    panel = page.get_by_role("complementary")
    expect(panel.get_by_text("registered, confirmed 3 s ago")).to_be_visible()
    expect(panel.locator(".threads")).to_contain_text("2 threads, 1 of them failing")
    expect(panel.get_by_role("row", name="census")).to_contain_text("OSError: no such file")
    warnings = panel.locator(".warnings li")
    expect(warnings).to_have_count(2)
    expect(warnings.filter(has_text="no collector is in force")).to_contain_text("numakin-enforcer doctor")


def test_a_node_whose_stream_is_closed_is_said_to_be_lost(extender: Extender, page: Page) -> None:
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    page.goto(f"http://{extender.web_address}/#view=nodes")
    expect(page.get_by_role("row", name="n1")).to_contain_text("live")
    enforcer.close()
    expect(page.get_by_role("row", name="n1")).to_contain_text("reconnecting")
    page.get_by_role("button", name="n1").click()
    expect(page.get_by_role("complementary").locator(".warnings")).to_contain_text("report stream is closed")
