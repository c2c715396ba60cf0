"""The page as a whole: who may use it, on what, and what it may load."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.extender.running import Extender, machine, reservation, whole_report
from tests.web.axe import faults
from tests.web.site import Site

PLACES = ("#view=map", "#view=pods", "#view=groups", "#view=nodes")

COLOURS = ("color-contrast", "link-in-text-block")
"""The rules whose findings may differ in the dark: the page is the same but for its colours."""

PANEL = {"pod": ".panel", "node": ".panel"}
"""Where these are shown: the map behind is the same as with a group's panel, which is looked at with all of it."""

GROUND = "() => getComputedStyle(document.documentElement).backgroundColor"


@pytest.mark.parametrize("place", [*PLACES, "pod", "group", "node"])
def test_axe_finds_nothing_in_the_light_and_nothing_in_the_dark(site: Site, page: Page, place: str) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(site.url + _hash(site, place))
    expect(page.locator(".room, .list").first).to_be_visible()
    if place in ("pod", "group", "node"):
        expect(page.locator(".panel section").first).to_be_visible()
    assert faults(page, within=PANEL.get(place)) == ""
    light = page.evaluate(GROUND)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.wait_for_function(f"light => ({GROUND})() !== light", arg=light)
    assert faults(page, *COLOURS, within=PANEL.get(place)) == ""


def test_nothing_is_loaded_from_elsewhere(site: Site, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(site.url + _hash(site, "group"))
    expect(page.locator(".series canvas")).to_be_visible()
    assert asked
    assert all(url.startswith(site.url) for url in asked)


def test_the_policy_lets_no_foreign_or_inline_code_run(site: Site, page: Page) -> None:
    policy = page.goto(site.url).headers["content-security-policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert set(rules) >= {"base-uri", "form-action", "frame-ancestors", "require-trusted-types-for"}
    assert {rules[kind] for kind in ("script-src", "style-src", "img-src", "connect-src")} == {"'self'"}


def test_a_group_is_found_by_its_name(site: Site, page: Page) -> None:
    page.goto(site.url)
    expect(page.locator(".room").first).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Find")).to_be_focused()
    page.keyboard.type("hotel")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary").get_by_role("heading", level=2)).to_contain_text("hotel-reservation")


@pytest.mark.parametrize("typed", ["default/web", "web"])
def test_of_like_names_the_one_that_was_typed_is_found(extender: Extender, page: Page, typed: str) -> None:
    """The other groups are larger, and more than are offered."""
    others = [reservation(f"{name}{at}", "0", group=f"default/web-{name}") for name in "abcdef" for at in range(3)]
    extender.enforcer("n1").report(machine(cpus=64), reservation("w", "0", group="default/web"), *others)
    page.goto(f"http://{extender.web_address}/")
    expect(page.locator(".room")).to_be_visible()
    page.get_by_role("combobox", name="Find").fill(typed)
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary")
    expect(panel.get_by_role("heading", level=2)).to_have_text("default/web")
    expect(panel).to_contain_text("1 pod")


def test_what_goes_while_it_is_chosen_leaves_another_chosen(extender: Extender, page: Page) -> None:
    """Enter did nothing then, and what is read aloud was none."""
    enforcer = extender.enforcer("n1")
    groups = [reservation(name, "0", group=f"default/web-{name}") for name in "ab"]
    enforcer.report(machine(), *groups)
    page.goto(f"http://{extender.web_address}/")
    expect(page.locator(".room")).to_be_visible()
    finder = page.get_by_role("combobox", name="Find")
    finder.fill("web-")
    offered = page.get_by_role("listbox").get_by_role("option")
    expect(offered).to_have_count(4)
    for _ in range(3):
        finder.press("ArrowDown")
    enforcer.send(report=whole_report(2, groups[:1]))
    expect(offered).to_have_count(2)
    expect(offered.last).to_have_attribute("aria-selected", "true")
    finder.press("Enter")
    expect(page.get_by_role("complementary").get_by_role("heading", level=2)).to_have_text("a")


def test_a_pod_is_found_by_parts_of_its_name(site: Site, page: Page) -> None:
    wanted = site.get("pods?text=")["pods"][-1]["pod"]
    page.goto(site.url)
    expect(page.locator(".room").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type(wanted.replace("/", " ").upper())
    expect(page.get_by_role("option", name=f"pod {wanted}", exact=True)).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary").get_by_role("heading", level=2)).to_have_text(wanted)
    expect(page).to_have_title(f"{wanted} · numakin")


def test_what_is_in_no_name_is_said_to_be_nowhere(site: Site, page: Page) -> None:
    page.goto(site.url)
    page.get_by_role("combobox", name="Find").fill("no-such-thing")
    expect(page.get_by_text("no group and no node has this in its name")).to_be_visible()


def test_help_says_what_marks_mean_and_escape_closes_it_alone(site: Site, page: Page) -> None:
    page.goto(site.url + "#view=nodes&node=node-00000")
    expect(page.locator(".panel section").first).to_be_visible()
    page.keyboard.press("?")
    help_shown = page.get_by_role("dialog", name="What is shown")
    expect(help_shown).to_contain_text("a pod with exclusive CPUs")
    assert faults(page) == ""
    page.keyboard.press("Escape")
    expect(help_shown).to_be_hidden()
    expect(page.locator(".panel")).to_be_visible()


@pytest.mark.parametrize("width", [360, 820])
def test_on_a_narrow_screen_a_pod_and_its_story_are_both_in_sight(site: Site, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(site.url + _hash(site, "pod"))
    expect(page.locator(".panel section").first).to_be_in_viewport()
    expect(page.locator(".pod.selected")).to_be_in_viewport()
    lowest = "() => document.querySelector('.pod.selected').getBoundingClientRect().bottom"
    panel = "() => document.querySelector('.panel').getBoundingClientRect().top"
    page.wait_for_function(f"() => ({lowest})() <= ({panel})()")
    assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_an_extender_that_does_not_answer_is_named_in_place_of_an_empty_cluster(site: Site, page: Page) -> None:
    page.route("**/api/v1/**", lambda route: route.fulfill(status=503, json={"error": "not now"}))
    page.goto(site.url)
    expect(page.get_by_role("alert")).to_contain_text("The extender does not answer")
    expect(page.locator(".tile")).to_have_count(0)
    page.unroute("**/api/v1/**")
    expect(page.locator(".room").first).to_be_visible()


def test_the_theme_can_be_chosen_and_is_remembered(site: Site, page: Page) -> None:
    page.goto(site.url)
    before = page.evaluate(GROUND)
    page.get_by_role("button", name="Theme: auto").click()
    page.get_by_role("button", name="Theme: light").click()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    page.wait_for_function(f"before => ({GROUND})() !== before", arg=before)
    dark = page.evaluate(GROUND)
    page.reload()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    page.wait_for_function(f"dark => ({GROUND})() === dark", arg=dark)


def test_on_paper_there_are_no_controls(site: Site, page: Page) -> None:
    page.goto(site.url)
    expect(page.locator(".room").first).to_be_visible()
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation")).to_be_hidden()
    expect(page.get_by_role("combobox", name="Find")).to_be_hidden()
    expect(page.locator(".room").first).to_be_visible()


def _hash(site: Site, place: str) -> str:
    if place.startswith("#"):
        return place
    if place == "node":
        return "#view=map&node=node-00000"
    group = site.get("overview")["groups"][0]["group"]
    if place == "group":
        return f"#view=map&group={group}"
    member = site.get(f"group?group={group}")["members"][0]["pod"]
    return f"#view=map&pod={member}"
