"""What a click opens: a pod, a group, a node."""

from __future__ import annotations

from time import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from lab.standins.patience import until
from tests.extender.running import Extender, machine, reservation, whole_report
from tests.web.site import Site


@pytest.fixture
def pod(site: Site) -> dict[str, Any]:
    """One that talks to others, as the extender tells of it."""
    rooms = site.get("rooms?" + "&".join(f"node={node['name']}" for node in site.get("overview")["nodes"]))
    crossing = next(line for line in rooms["lines"] if line["reach"] == "numa")
    named = {row["uid"]: row["pod"] for room in rooms["nodes"] for row in room["pods"]}
    namespace, name = named[crossing["pods"][0]].split("/")
    return site.get(f"pod?namespace={namespace}&pod={name}")


def test_a_click_on_a_pod_says_why_it_is_there(site: Site, page: Page, pod: dict[str, Any]) -> None:
    page.goto(site.url)
    page.locator(f'.pod[data-box="{pod["uid"]}"]').click()
    panel = page.get_by_role("complementary")
    expect(panel.get_by_role("heading", name=pod["pod"])).to_be_focused()
    expect(panel.locator(".why")).to_contain_text(f"{pod['pod'].partition('/')[2]} is on NUMA node ")
    (decision,) = pod["happened"]
    for reason in decision["reasons"]:
        expect(panel.locator(".decision").get_by_text(reason, exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ("conflict", "left to another NRI plugin, which sets its CPUs too"),
        ("vm", "left open, as it runs in a virtual machine"),
        ("let out", "let out, as its home is hot"),
    ],
)
def test_what_happened_to_it_is_said_in_words(
    site: Site, page: Page, pod: dict[str, Any], event: str, words: str
) -> None:
    (decision,) = pod["happened"]
    told = {**pod, "happened": [{**decision, "event": event}]}
    page.route("**/api/v1/pod?*", lambda route: route.fulfill(json=told))
    page.goto(site.url)
    page.locator(f'.pod[data-box="{pod["uid"]}"]').click()
    expect(page.locator(".decision")).to_contain_text(words)


def test_it_says_what_was_nominated_and_what_became_of_it(site: Site, page: Page, pod: dict[str, Any]) -> None:
    page.goto(f"{site.url}#view=map&pod={pod['pod']}")
    (decision,) = pod["happened"]
    expect(page.locator(".outcome")).to_contain_text(decision["nomination"])
    expect(page.locator(".outcome")).to_contain_text(f"NUMA {decision['nominated']}")


def test_it_says_what_else_was_weighed(site: Site, page: Page, pod: dict[str, Any]) -> None:
    page.goto(f"{site.url}#view=map&pod={pod['pod']}")
    rows = page.locator(".scored")
    expect(rows).to_have_count(len(pod["scored"]["nodes"]))
    for at, scored in enumerate(pod["scored"]["nodes"]):
        expect(rows.nth(at)).to_contain_text(f"{scored['score']}{scored['node']}")
    expect(page.locator(".scored", has_text="it is here")).to_have_count(1)


def test_it_names_the_peers_and_leads_to_them(site: Site, page: Page, pod: dict[str, Any]) -> None:
    page.goto(f"{site.url}#view=map&pod={pod['pod']}")
    peers = page.get_by_role("region", name="Peers")
    expect(peers.locator("tbody tr")).to_have_count(len(pod["peers"]))
    first = pod["peers"][0]
    row = peers.locator("tbody tr").first
    expect(row).to_contain_text(
        {"local": "inside one NUMA node", "numa": "between NUMA nodes", "node": "between nodes"}[first["reach"]]
    )
    row.get_by_role("button").click()
    expect(page.get_by_role("complementary").get_by_role("heading", level=2)).to_have_text(first["pod"])


def test_a_pod_that_nobody_knows_is_said_to_be_unknown(site: Site, page: Page) -> None:
    page.goto(f"{site.url}#view=map&pod=nowhere/nobody")
    expect(page.get_by_role("alert")).to_contain_text("the API server has no pod nowhere/nobody")


def test_a_pod_that_nothing_has_named_yet_is_told_of_by_its_uid(extender: Extender, page: Page) -> None:
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), reservation("d3b0-7384", "1"))
    page.goto(f"http://{extender.web_address}/")
    page.locator('.pod[data-box="d3b0-7384"]').click()
    panel = page.get_by_role("complementary")
    expect(panel.get_by_role("heading", name="d3b0-7384")).to_be_focused()
    expect(panel.get_by_label("Where it is")).to_contain_text("n1, NUMA 1")


@pytest.mark.parametrize("panel", ["pod=d3b0", "group=default/shop"])
def test_an_open_panel_does_not_go_on_telling_of_what_is_gone(extender: Extender, page: Page, panel: str) -> None:
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), reservation("d3b0", "1"))
    page.goto(f"http://{extender.web_address}/#view=map&{panel}")
    shown = page.get_by_role("complementary")
    expect(shown.get_by_text("NUMA 1").first).to_be_visible()
    enforcer.send(report=whole_report(2))
    expect(shown.get_by_role("alert")).to_contain_text("no ")
    expect(shown.get_by_text("NUMA 1")).to_have_count(0)


def test_escape_closes_it_and_the_focus_is_where_it_was(site: Site, page: Page, pod: dict[str, Any]) -> None:
    page.goto(site.url)
    shown = page.locator(f'.pod[data-box="{pod["uid"]}"]')
    shown.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary")).to_have_count(0)
    expect(shown).to_be_focused()


def test_a_group_shows_its_locality_beside_what_else_could_be(site: Site, page: Page) -> None:
    name = site.get("overview")["groups"][0]["group"]
    page.goto(f"{site.url}#view=map&group={name}")
    rows = page.locator(".compared tr")
    expect(rows).to_have_count(4)
    story = site.get(f"group?group={name}")
    shares = [story["now"], *(story["compared"][way] for way in ("best", "lowest_first", "spread"))]
    for at, share in enumerate(shares):
        expect(rows.nth(at).locator(".number")).to_have_text(f"{round(share * 100)} %")
    assert story["compared"]["best"] >= story["compared"]["lowest_first"]


def test_a_group_shows_its_locality_over_time(site: Site, page: Page) -> None:
    name = site.get("overview")["groups"][0]["group"]
    page.goto(f"{site.url}#view=map&group={name}")
    canvas = page.locator(".series canvas")
    expect(canvas).to_be_visible()
    drawn = (
        "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(value => value)"
    )
    assert canvas.evaluate(drawn)


COLUMNS = """canvas => {
    const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const element = canvas.closest(".series");
    element.style.color = "var(--now)";
    const wanted = getComputedStyle(element).color.match(/[0-9]+/g).slice(0, 3).map(Number);
    const is_line = (at) => data[at + 3] > 200 && wanted.every((part, of) => Math.abs(data[at + of] - part) < 30);
    return Array.from({ length: width }, (_, x) => x)
        .filter((x) => Array.from({ length: height }, (_, y) => 4 * (y * width + x)).some(is_line)).length / width;
}"""
"""The share of the canvas' columns that the line of what was reached is in."""


@pytest.mark.parametrize("behind_s", [0, 3600])
def test_every_point_is_drawn_by_whatever_clock_the_browser_has(site: Site, page: Page, behind_s: int) -> None:
    name = site.get("overview")["groups"][0]["group"]
    story = site.get(f"group?group={name}")
    story["series"] = [[time() - 600 + 60 * at, 0.3 + 0.05 * at] for at in range(11)]
    page.add_init_script(f"const clock = Date.now; Date.now = () => clock() - {1000 * behind_s}")
    page.route("**/api/v1/group?*", lambda route: route.fulfill(json=story))
    page.goto(f"{site.url}#view=map&group={name}")
    canvas = page.locator(".series canvas")
    until(lambda: canvas.evaluate(COLUMNS) > 0.6, "the line goes over most of the canvas")


WRITTEN = """window.written = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
    window.written.push(text);
    write.call(this, text, ...where);
};"""


@pytest.mark.parametrize(("hours", "days"), [(1, set()), (72, {"26 Nov", "27 Nov", "28 Nov", "29 Nov"})])
def test_of_points_of_several_days_the_day_is_told(site: Site, page: Page, hours: int, days: set[str]) -> None:
    """By the clock alone noon of one day is like that of any other."""
    name = site.get("overview")["groups"][0]["group"]
    noon = 1_795_953_600  # 29 November
    story = site.get(f"group?group={name}")
    story |= {"now": None, "series": [[noon - 3600 * hours * at / 100, 0.5] for at in range(100, -1, -1)]}
    page.add_init_script(WRITTEN)
    page.route("**/api/v1/group?*", lambda route: route.fulfill(json=story))
    page.goto(f"{site.url}#view=map&group={name}")
    expect(page.locator(".series canvas")).to_be_visible()
    until(lambda: any(":" in text for text in page.evaluate("written")), "the hours are written")
    assert {text for text in page.evaluate("written") if text.endswith(" Nov")} == days


def test_a_group_shows_who_talks_to_whom(site: Site, page: Page) -> None:
    name = site.get("overview")["groups"][0]["group"]
    story = site.get(f"group?group={name}")
    page.goto(f"{site.url}#view=map&group={name}")
    graph = page.get_by_role("region", name="Workloads and their traffic")
    expect(graph.locator(".workload")).to_have_count(len(story["workloads"]))
    expect(graph.locator(".line")).to_have_count(sum(edge["source"] != edge["target"] for edge in story["edges"]))


def test_a_node_shows_its_machine(site: Site, page: Page) -> None:
    story = site.get("node?node=node-00002")
    page.goto(f"{site.url}#view=nodes&node=node-00002")
    expect(page.locator(".panel .cpu[x]:not(.legend *)")).to_have_count(
        sum(row["cpu"] for row in story["numa_nodes"]) // 1000
    )
    cells = page.locator(".distances td.number")
    assert [int(text) for text in cells.all_inner_texts()] == [
        far for row in story["numa_nodes"] for far in row["distances"]
    ]


def test_a_node_shows_whose_the_exclusive_cpus_are(site: Site, page: Page) -> None:
    node = next(row for row in site.get("overview")["nodes"] if row["exclusive"])
    page.goto(f"{site.url}#view=nodes&node={node['name']}")
    expect(page.locator(".panel .cpus .cpu-exclusive")).to_have_count(node["exclusive"])
    expect(page.locator(".panel .cpus .cpu-exclusive title").first).to_contain_text("exclusive to crowd-")


def test_a_node_with_five_hundred_members_is_searched_and_sorted(site: Site, page: Page) -> None:
    story = site.get("node?node=node-00002")
    row = {"group": "ns/big", "cpus": "0-3", "mems": "0", "exclusive": "", "externally_managed": False, "member": True}
    story["containers"] = [{**row, "pod": f"ns/pod-{at}", "container": f"c{at}"} for at in range(500)]
    page.route("**/api/v1/node?*", lambda route: route.fulfill(json=story))
    page.goto(f"{site.url}#view=nodes&node=node-00002")
    rows = page.get_by_role("region", name="Containers that opted in").locator("tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="50 more of 450").click()
    expect(rows).to_have_count(100)
    panel = page.get_by_role("complementary")
    panel.get_by_role("button", name="pod", exact=True).click()
    expect(rows.first).to_contain_text("pod-0")
    panel.get_by_role("button", name="pod", exact=False).first.click()
    expect(rows.first).to_contain_text("pod-499")
    panel.get_by_role("searchbox").fill("POD-123 c123")
    expect(rows).to_have_count(1)
    expect(panel.get_by_text("1 of 500")).to_be_visible()


def test_pods_that_are_expected_on_a_node_are_listed(site: Site, page: Page) -> None:
    story = site.get("node?node=node-00002")
    story["expected"] = [{"uid": "u", "pod": "ns/coming", "group": None, "numa_nodes": [1], "bound": True}]
    page.route("**/api/v1/node?*", lambda route: route.fulfill(json=story))
    page.goto(f"{site.url}#view=nodes&node=node-00002")
    expect(page.get_by_role("region", name="Expected pods").locator("tbody tr")).to_contain_text("coming--NUMA 1bound")


def test_why_a_pod_was_not_scored_is_said_where_its_scores_would_be(
    site: Site, page: Page, pod: dict[str, Any]
) -> None:
    why = "kube-scheduler did not ask for scores: it offered one node alone"
    page.route("**/api/v1/pod?*", lambda route: route.fulfill(json={**pod, "scored": None, "unscored": why}))
    page.goto(f"{site.url}#view=map&pod={pod['pod']}")
    expect(page.get_by_text(f"{why}.")).to_be_visible()
