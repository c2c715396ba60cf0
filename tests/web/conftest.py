from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from lab.standins.patience import PATIENCE_S
from tests.extender.running import Extender, running
from tests.web import site as sites
from tests.web.site import Site

PATIENCE_MS = 1000 * PATIENCE_S
"""How long the page may take to show something."""

EXPECTED = ("401", "403", "404", "503")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if sites.CHROMIUM is None:
        pytest.skip("no Chromium: nobody has looked at the page (apt-get install chromium-headless-shell)")
    with sites.running(tmp_path_factory.mktemp("page")) as site:
        yield site


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """It keeps an event loop on this thread, which nobody's tests but these may find."""
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    if sites.CHROMIUM is None:
        pytest.skip("no Chromium: nobody has looked at the page (apt-get install chromium-headless-shell)")
    browser = sites.browser(playwright)
    yield browser
    browser.close()


@pytest.fixture
def extender(tmp_path: Path) -> Iterator[Extender]:
    """One of the test's own. Named before `page`: it ends after the page does, which else complains that nobody answers."""
    with running(tmp_path) as first:
        yield first


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page in a profile of its own. Whatever the browser complains of fails the test, but for an answer that says no
    place is free (503), nothing is known (404) or who asks may not (401, 403), which the page tells in its own words.
    """
    size = {"width": 1440, "height": 950}
    context = browser.new_context(viewport=size, color_scheme="light", ignore_https_errors=True)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    expect.set_options(timeout=PATIENCE_MS)
    page.set_default_timeout(PATIENCE_MS)
    yield page
    context.close()
    unexpected = [text for text in complaints if not any(status in text for status in EXPECTED)]
    assert not unexpected, "the browser complains"
