"""The page follows the cluster, and says when it does not."""

from __future__ import annotations

import os
import signal

from playwright.sync_api import Locator, Page, expect

from tests.extender.running import Extender, machine


def test_an_extender_that_hangs_is_said_not_to_answer(extender: Extender, page: Page) -> None:
    """As one whose machine has lost power does: the connection stays open, and nothing ever comes."""
    extender.enforcer("n1").report(machine())
    page.clock.install()
    page.goto(f"http://{extender.web_address}/#view=nodes")
    expect(_link(page)).to_have_text("live")
    assert extender.program.process is not None
    os.kill(extender.program.process.pid, signal.SIGSTOP)
    try:
        page.clock.fast_forward("01:20")
        expect(_link(page)).to_have_text("no answer")
    finally:
        os.kill(extender.program.process.pid, signal.SIGCONT)
    expect(_link(page)).to_have_text("live")


def _link(page: Page) -> Locator:
    return page.locator(".link")
