"""The lists of pods, groups and nodes: searched, sorted, and the same again from their address."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.web.site import Site


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
