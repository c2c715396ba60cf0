"""A group that is cut over nodes shows which of its pods would have to come anew where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.extender.cut_group import Cut, cut_group


@pytest.fixture
def cut(tmp_path: Path) -> Iterator[Cut]:
    with cut_group(tmp_path) as made:
        yield made


def test_its_panel_has_each_pod_with_where_it_is_and_would_be(cut: Cut, page: Page) -> None:
    cut.planned()
    page.goto(f"http://{cut.extender.web_address}/#view=map&group=default/shop")
    panel = page.get_by_role("complementary")
    expect(panel).to_contain_text(
        "It is cut over 2 nodes: 1 pod evicted would have it on one node, with 100 % inside one NUMA node instead of 50 %."
    )
    row = panel.get_by_role("region", name="Pods that would come anew elsewhere").locator("tbody tr")
    expect(row.locator("th, td")).to_have_text(["db-0", "n2, NUMA 1", "n1, NUMA 0"])
