"""The page follows the cluster, and says when it does not."""

from __future__ import annotations

import os
import signal

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from lab.standins.patience import until
from tests.extender.running import Extender, machine, reservation


def test_an_extender_that_hangs_is_said_not_to_answer(extender: Extender, page: Page) -> None:
    """As one whose machine has lost power does: the connection stays open, and nothing ever comes."""
    extender.enforcer("n1").report(machine())
    page.clock.install()
    page.goto(f"http://{extender.web_address}/#view=nodes")
    expect(_link(page)).to_have_text("live")
    assert extender.program.process is not None
    os.kill(extender.program.process.pid, signal.SIGSTOP)
    try:
        page.clock.fast_forward("01:20")
        expect(_link(page)).to_have_text("no answer")
    finally:
        os.kill(extender.program.process.pid, signal.SIGCONT)
    expect(_link(page)).to_have_text("live")


def test_what_is_asked_for_is_shown_though_the_cluster_changes_faster_than_it_is_answered(
    extender: Extender, page: Page
) -> None:
    """A large group takes seconds to be compared."""
    extender.enforcer("n1").report(machine(), reservation("a", "0"), reservation("b", "1"))
    asked: list[Route] = []

    def hold(route: Route) -> None:
        asked.append(route)

    page.route("**/api/v1/group?*", hold)
    page.goto(f"http://{extender.web_address}/#view=nodes&group=default/shop")
    expect(page.get_by_role("row", name="n1")).to_be_visible()
    extender.enforcer("n2").report(machine())
    expect(page.get_by_role("row", name="n2")).to_be_visible()
    (first,) = asked
    first.continue_()
    expect(page.get_by_role("complementary")).to_contain_text("2 pods")
    with page.expect_request("**/api/v1/group?*"):
        extender.enforcer("n3").report(machine())


def test_a_group_that_is_still_asked_for_is_not_said_to_have_no_pods(extender: Extender, page: Page) -> None:
    extender.enforcer("n1").report(machine(), reservation("a", "0"))

    def hold(_route: Route) -> None:
        """Until it is let go on."""

    page.route("**/api/v1/group?*", hold)
    page.goto(f"http://{extender.web_address}/#view=map&filter=default/shop")
    expect(page.get_by_text("Asking…")).to_be_visible()
    expect(page.get_by_text("No pod of this group")).to_have_count(0)
    page.unroute("**/api/v1/group?*", hold)  # which lets go on what is held
    expect(page.get_by_role("region", name="Node n1")).to_be_visible()


def test_what_failed_is_asked_for_again_though_nothing_changes(extender: Extender, page: Page) -> None:
    """And what there was before it is said to be that: of one replica that fails nothing else tells."""
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), reservation("a", "0"))

    def refuse(route: Route) -> None:
        route.fulfill(status=503, json={"error": "not now"})

    page.route("**/api/v1/group?*", refuse)
    page.goto(f"http://{extender.web_address}/#view=nodes&group=default/shop")
    panel = page.get_by_role("complementary")
    expect(panel.get_by_role("alert")).to_have_text("not now")
    page.unroute("**/api/v1/group?*", refuse)
    expect(panel).to_contain_text("1 pod")
    expect(panel.get_by_role("alert")).to_have_count(0)
    page.route("**/api/v1/group?*", refuse)
    extender.enforcer("n2").report(machine())
    expect(panel.get_by_role("alert")).to_have_text("This is the last answer. Since then: not now")
    expect(panel).to_contain_text("1 pod")


@pytest.mark.parametrize("asked", ["group?*", "overview"])
def test_what_hangs_is_asked_for_again(extender: Extender, page: Page, asked: str) -> None:
    """As by way of a replica whose machine has lost power, while another answers all else."""
    extender.enforcer("n1").report(machine(), reservation("a", "0"))
    page.clock.install()
    held: list[Route] = []
    page.route(f"**/api/v1/{asked}", lambda route: route.fallback() if held else held.append(route))
    with page.expect_request(f"**/api/v1/{asked}"):
        page.goto(f"http://{extender.web_address}/#view=nodes&group=default/shop")
    until(lambda: page.evaluate("1") and held, "it is asked for")
    page.clock.fast_forward("01:20")
    page.clock.fast_forward("00:06")
    expect(page.get_by_role("complementary")).to_contain_text("1 pod")


def test_a_node_that_comes_leaves_who_looks_at_the_others_where_they_are(extender: Extender, page: Page) -> None:
    """The map was taken away and drawn anew: what was scrolled to and the focus were lost."""
    extender.enforcer("n1").report(machine(), reservation("a", "0"))
    page.goto(f"http://{extender.web_address}/")
    pod = page.get_by_role("region", name="Node n1").locator(".pod")
    pod.focus()
    extender.enforcer("n2").report(machine(), reservation("b", "0"))
    expect(page.get_by_role("region", name="Node n2")).to_be_visible()
    expect(pod).to_be_focused()


def _link(page: Page) -> Locator:
    return page.locator(".link")
