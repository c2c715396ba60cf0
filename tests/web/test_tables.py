"""The lists of pods, groups and nodes: searched, sorted, and the same again from their address."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.site import Site

EDGES = """([table, side]) => {
    const edge = (element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        return range.getBoundingClientRect()[side];
    };
    const heads = [...table.querySelectorAll("thead th")];
    return heads.map((head, at) => {
        const cell = table.querySelectorAll("tbody tr:first-child > *")[at];
        const aligned = head.classList.contains("number") ? "right" : "left";
        return aligned === side ? [edge(head.querySelector(".sort").firstChild), edge(cell)] : null;
    }).filter(Boolean);
}"""
"""Where the words of each head, and of the first row below it, begin or end, of the columns that begin or end there."""


def overview(site: Site, page: Page, **of_first: Any) -> dict[str, Any]:
    """The page is told this of the first node."""
    told: dict[str, Any] = site.get("overview")
    told["nodes"][0] |= of_first
    page.route("**/api/v1/overview", lambda route: route.fulfill(json=told))
    return told


def test_of_many_nodes_those_that_are_left_can_be_asked_for(site: Site, page: Page) -> None:
    told = site.get("overview")
    told["nodes"] = [{**told["nodes"][0], "name": f"node-{at}"} for at in range(203)]
    page.route("**/api/v1/overview", lambda route: route.fulfill(json=told))
    page.route("**/api/v1/changes?*", lambda route: route.fulfill(status=503))
    page.goto(f"{site.url}#view=nodes")
    rows = page.get_by_role("region", name="Nodes").locator("tbody tr")
    expect(rows).to_have_count(200)
    page.get_by_role("button", name="3 more of 3").click()
    expect(rows).to_have_count(203)


def test_a_node_s_fill_is_a_number_beside_its_bar(site: Site, page: Page) -> None:
    told = overview(site, page, cpu=[96000, 41500, None], memory=[384 << 30, 96 << 30], held=[500, 4000], hot=[1, 3])
    page.goto(site.url + "#view=nodes")
    row = page.locator(".list tbody tr", has_text=told["nodes"][0]["name"])
    expect(row.locator(".meter-numbers").nth(0)).to_have_text("41.5 of 96")
    expect(row.locator(".meter-numbers").nth(1)).to_have_text("96 GiB of 384 GiB")
    expect(row.locator("td.number").nth(2)).to_have_text("4.5")
    expect(row.locator("td").last).to_have_text("1, 3")
    words = row.locator(".meter").first.get_attribute("aria-label") or ""
    assert "41.5 of 96 CPUs requested, 0.5 of them by pods that are expected, 4 kept for groups still to come" in words


@pytest.mark.parametrize("view", ["nodes", "groups", "pods"])
def test_what_is_in_a_column_begins_or_ends_where_its_head_does(site: Site, page: Page, view: str) -> None:
    page.goto(f"{site.url}#view={view}")
    table = page.locator("table.list")
    expect(table.locator("tbody tr").first).to_be_visible()
    for side in ("left", "right"):
        edges = table.evaluate(f"table => ({EDGES})([table, '{side}'])")
        assert [edge for edge in edges if abs(edge[0] - edge[1]) > 2] == []


def test_a_group_s_pairs_stand_beside_what_its_size_allows(site: Site, page: Page) -> None:
    page.goto(site.url + "#view=groups")
    told = site.get("overview")["groups"][0]
    now, possible = (f"{round(100 * share)} %" for share in told["together"])
    row = page.locator(".list tbody tr", has_text=told["group"])
    expect(row.locator(".meter-numbers")).to_have_text(f"{now} of {possible}")


def test_a_pod_that_was_bound_unscored_is_marked_with_why(site: Site, page: Page) -> None:
    told = site.get("pods?text=")
    told["pods"][0]["unscored"] = "kube-scheduler did not ask for scores: it offered one node alone"
    page.route("**/api/v1/pods?*", lambda route: route.fulfill(json=told))
    page.goto(site.url + "#view=pods")
    mark = page.locator(".list tbody tr").first.get_by_text("not scored")
    expect(mark).to_have_attribute("title", told["pods"][0]["unscored"])
    expect(page.get_by_text("not scored")).to_have_count(1)


def test_pods_are_listed_with_where_they_are(site: Site, page: Page) -> None:
    page.goto(site.url + "#view=pods")
    known = site.get("pods?text=")
    expect(page.locator(".list tbody tr")).to_have_count(min(len(known["pods"]), known["pods_known"]))
    row = known["pods"][0]
    shown = page.locator(".list tbody tr").first
    for text in (row["pod"], row["group"], row["node"], ", ".join(map(str, row["numa_nodes"]))):
        expect(shown).to_contain_text(text)


def test_a_search_is_in_the_address_and_each_of_its_words_must_fit(site: Site, page: Page) -> None:
    page.goto(site.url + "#view=pods")
    expect(page.locator(".list tbody tr").first).to_be_visible()
    row = site.get("pods?text=")["pods"][-1]
    text = f"{row['group'].upper()} {row['pod'].split('/')[1]} {row['node']}"
    page.get_by_role("searchbox", name="Search").fill(text)
    expect(page.locator(".list tbody tr")).to_have_count(1)
    expect(page.locator(".list tbody th")).to_have_text(row["pod"])
    page.reload()
    expect(page.get_by_role("searchbox", name="Search")).to_have_value(text)
    expect(page.locator(".list tbody tr")).to_have_count(1)


def test_a_search_that_fits_nothing_says_so_and_can_be_taken_back(site: Site, page: Page) -> None:
    page.goto(site.url + "#view=pods&text=no-such-pod")
    expect(page.get_by_text("No opted-in pod has this in its name")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".list tbody tr").first).to_be_visible()


def test_the_order_is_in_the_address(site: Site, page: Page) -> None:
    page.goto(site.url + "#view=nodes")
    names = [node["name"] for node in site.get("overview")["nodes"]]
    expect(page.locator(".list tbody th").first).to_have_text(min(names))
    page.get_by_role("button", name="node", exact=False).first.click()
    expect(page.locator(".list tbody th").first).to_have_text(max(names))
    page.reload()
    expect(page.locator(".list tbody th").first).to_have_text(max(names))
    page.go_back()
    expect(page.locator(".list tbody th").first).to_have_text(min(names))


def test_which_lines_are_drawn_is_in_the_address(site: Site, page: Page) -> None:
    page.goto(site.url + "#view=map&lines=none")
    expect(page.locator(".room").first).to_be_visible()
    expect(page.get_by_label("Lines", exact=True)).to_have_value("none")
    expect(page.locator(".lines .line")).to_have_count(0)
