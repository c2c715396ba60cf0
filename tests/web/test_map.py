"""The map: nodes as rooms with their NUMA nodes, the pods in them, and traffic between."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.web.site import Site


def test_nodes_are_rooms_with_their_numa_nodes_and_pods(site: Site, page: Page) -> None:
    page.goto(site.url)
    names = [node["name"] for node in site.get("overview")["nodes"]]
    expect(page.locator(".room")).to_have_count(len(names))
    for room in site.get("rooms?" + "&".join(f"node={name}" for name in names))["nodes"]:
        shown = page.get_by_role("region", name=f"Node {room['name']}")
        expect(shown.get_by_role("group")).to_have_count(len(room["numa_nodes"]))
        expect(shown.locator(".pod")).to_have_count(len(room["pods"]))


def test_the_fill_of_a_numa_node_is_said_in_words_too(site: Site, page: Page) -> None:
    page.goto(site.url)
    room = site.get("rooms?node=node-00000")["nodes"][0]
    for numa_node in room["numa_nodes"]:
        shown = page.get_by_role("region", name="Node node-00000").get_by_role(
            "group", name=f"NUMA node {numa_node['id']},"
        )
        words = shown.locator(".meter").first.get_attribute("aria-label") or ""
        assert f"{numa_node['exclusive']} exclusive" in words
        assert f"of {numa_node['cpu'] // 1000} CPUs requested" in words


def test_pods_of_one_group_have_one_colour_and_one_code(site: Site, page: Page) -> None:
    page.goto(site.url)
    expect(page.locator(".pod").first).to_be_visible()
    looks: dict[str, set[tuple[str, str]]] = {}
    for pod in page.locator(".pod").all():
        words = pod.get_attribute("aria-label") or ""
        group = words.split("group ")[1].split(";")[0]
        color = pod.locator(".code").evaluate("element => getComputedStyle(element).backgroundColor")
        looks.setdefault(group, set()).add((color, pod.locator(".code").inner_text()))
    assert all(len(poll) == 1 for poll in looks.values())
    assert len({code for poll in looks.values() for _, code in poll}) == len(looks) > 2


def test_traffic_that_crosses_is_drawn_in_another_colour_and_dashed(site: Site, page: Page) -> None:
    page.goto(site.url)
    page.get_by_label("Lines", exact=True).select_option("pods")
    reaches = {line["reach"] for line in _lines(site)}
    assert {"local", "numa"} <= reaches
    strokes, dashes = {}, {}
    for reach in reaches:
        line = page.locator(f".lines .line-{reach}").first
        expect(line).to_be_attached()
        strokes[reach] = line.evaluate("element => getComputedStyle(element).stroke")
        dashes[reach] = line.evaluate("element => getComputedStyle(element).strokeDasharray")
    assert len(set(strokes.values())) == len(set(dashes.values())) == len(reaches)


def test_more_traffic_makes_a_thicker_line(site: Site, page: Page) -> None:
    page.goto(site.url)
    page.get_by_label("Lines", exact=True).select_option("pods")
    known = sorted(line["bytes"] for line in _lines(site))
    assert known[0] < known[-1]
    expect(page.locator(".lines .line")).to_have_count(len(known))
    widths = [float(line.get_attribute("stroke-width") or 0) for line in page.locator(".lines .line").all()]
    assert widths == sorted(widths)
    assert widths[-1] > 3 * widths[0]


def test_traffic_is_summed_up_between_numa_nodes_at_first(site: Site, page: Page) -> None:
    page.goto(site.url)
    pairs = len(
        {tuple(sorted(_homes(site)[pod] for pod in line["pods"])) for line in _lines(site) if line["reach"] != "local"}
    )
    expect(page.locator(".lines .sum")).to_have_count(pairs)


def test_only_the_group_that_is_asked_for_is_shown(site: Site, page: Page) -> None:
    page.goto(site.url)
    group = site.get("overview")["groups"][0]
    page.get_by_label("Group", exact=True).select_option(group["group"])
    expect(page.locator(".room")).to_have_count(group["nodes"])
    expect(page.locator(".pod:not(.dim)")).to_have_count(group["members"])


def test_arrow_keys_lead_from_pod_to_pod(site: Site, page: Page) -> None:
    page.goto(site.url)
    first = page.locator(".pod").first
    first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".pod:focus")).to_have_count(1)
    expect(first).not_to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(first).to_be_focused()


def test_what_ends_leaves_the_page_without_a_reload(site: Site, page: Page) -> None:
    page.goto(site.url)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    replica, pod = next(iter(site.cluster.pods.items()))
    shown = page.locator(f'.pod[data-box="{pod.uid}"]')
    expect(shown).to_be_visible()
    site.cluster.end([replica])
    expect(shown).to_have_count(0)
    site.cluster.reconnect()
    site.cluster.place([replica])
    expect(page.locator(f'.pod[data-box="{site.cluster.pods[replica].uid}"]')).to_be_visible()


def _lines(site: Site) -> list[dict[str, Any]]:
    names = "&".join(f"node={node['name']}" for node in site.get("overview")["nodes"])
    lines: list[dict[str, Any]] = site.get(f"rooms?{names}")["lines"]
    return lines


def _homes(site: Site) -> dict[str, str]:
    names = "&".join(f"node={node['name']}" for node in site.get("overview")["nodes"])
    rooms = site.get(f"rooms?{names}")["nodes"]
    return {pod["uid"]: f"{room['name']} {pod['numa_nodes']}" for room in rooms for pod in room["pods"]}
