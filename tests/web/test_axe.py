"""Axe sees what is wrong, of all rules or of some."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.web.axe import faults

PALE = "<p style='color: #ddd; background: #fff'>pale</p>"
NAMELESS = "<button></button>"
PAGE = "<!DOCTYPE html><html lang='en'><title>any</title><main><h1>any</h1>{}</main></html>"


def test_a_page_that_is_in_order_has_none(page: Page) -> None:
    page.set_content(PAGE.format("<p>all is well</p>"))
    assert faults(page) == ""


def test_all_are_told_in_words(page: Page) -> None:
    page.set_content(PAGE.format(2 * PALE + NAMELESS))
    told = faults(page)
    assert told.count("<p style") == 2
    assert "<button>" in told


def test_of_one_rule_only_what_it_says(page: Page) -> None:
    page.set_content(PAGE.format(PALE + NAMELESS))
    told = faults(page, "color-contrast")
    assert "<p style" in told
    assert "<button>" not in told


def test_of_a_part_only_what_is_within(page: Page) -> None:
    page.set_content(PAGE.format(f"{PALE}<div class='panel'>{NAMELESS}</div>"))
    told = faults(page, within=".panel")
    assert "<button>" in told
    assert "<p style" not in told
