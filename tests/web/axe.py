"""What axe-core finds wrong with a page as it is shown: https://www.deque.com/axe/core-documentation."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

VIOLATIONS = {"resultTypes": ["violations"]}
"""All of these, and of what is in order one element for each rule: telling of all would be half of the time."""


def faults(page: Page, *rules: str, within: str | None = None) -> str:
    """Of these rules, or of all; in words, empty where there are none. within: a selector; None: of the whole page."""
    only = {"runOnly": {"type": "rule", "values": [*rules]}} if rules else {}
    results = Axe().run(page, context=within, options=VIOLATIONS | only)
    return str(results.generate_report()) if results.response["violations"] else ""
