"""A browser, and a live cluster to look at: the real extender, the enforcers' own agents, recorded applications."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from benchmarks.cluster import load
from benchmarks.cluster.driver import Cluster, Plan
from tests.extender.running import until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
"""Root has no sandbox; and nothing but what the tests ask for goes out."""


PATIENCE_MS = 30_000
"""How long the page may take to show something; a loaded machine needs a tenth of that."""


@dataclass
class Site:
    """The page of a running extender, and the cluster behind it."""

    cluster: Cluster

    @cached_property
    def url(self) -> str:
        return f"http://{self.cluster.extender.http}/"

    def get(self, path: str) -> Any:
        return self.cluster.extender.get(f"/api/v1/{path}")

    def talk(self) -> None:
        """What all pods say to each other in a minute, up to where the extender has learned it."""
        self.cluster.talk(list(self.cluster.pods), requests=6000, seconds=60, windows=3)
        until("traffic is learned", lambda: self.get("overview")["share"])


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Four machines; two applications and one that no NUMA node holds, and groups with exclusive CPUs."""
    with Cluster(tmp_path_factory.mktemp("page"), Plan(nodes=4, kubelet_s=0.3)) as cluster:
        site = Site(cluster)
        cluster.place(load.arrivals([load.wide(), *load.instances(2, cluster.random)], cluster.random))
        cluster.place(load.crowd(8, cluster.random))
        site.talk()
        yield site


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium: the page was not looked at (apt-get install chromium)")
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
    yield browser
    browser.close()


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A page in a profile of its own. Whatever the browser complains of fails the test, but for an answer that says no
    place is free (503) or nothing is known (404), which the page tells in its own words.
    """
    context = browser.new_context(viewport={"width": 1440, "height": 950}, color_scheme="light")
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    expect.set_options(timeout=PATIENCE_MS)
    page.set_default_timeout(PATIENCE_MS)
    yield page
    context.close()
    unexpected = [text for text in complaints if "503" not in text and "404" not in text]
    assert not unexpected, "the browser complains"
