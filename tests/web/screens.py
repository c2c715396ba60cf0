"""The pictures of docs/screens, taken anew: python -m tests.web.screens."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.web import site as sites
from tests.web.site import Site

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screens"
SIZE = {"width": 1360, "height": 850}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sites.running(Path(folder)) as site, sync_playwright() as playwright:
        browser = sites.browser(playwright)
        for name, (place, scheme) in _places(site).items():
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)
            page.goto(site.url + place)
            expect(page.locator(".room, .list").first).to_be_visible()
            _settled(page, site)
            page.screenshot(path=FOLDER / f"{name}.png")
            page.close()
        browser.close()


def _places(site: Site) -> dict[str, tuple[str, str]]:
    groups = [row["group"] for row in site.get("overview")["groups"]]
    pod = site.get(f"group?group={groups[0]}")["members"][3]["pod"]
    node = max(site.get("overview")["nodes"], key=lambda row: row["exclusive"])["name"]
    return {
        "map": ("#view=map", "light"),
        "pod": (f"#view=map&pod={pod}", "light"),
        "group": (f"#view=map&group={groups[0]}", "dark"),
        "node": (f"#view=nodes&node={node}", "light"),
    }


def _settled(page: Page, site: Site) -> None:
    """Lines are drawn once the rooms are laid out."""
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    site.talk()
    page.wait_for_load_state("load")


if __name__ == "__main__":
    main()
