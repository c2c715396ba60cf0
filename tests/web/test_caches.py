"""The caches within which members of a node are kept, beside their NUMA nodes."""

from __future__ import annotations

from dataclasses import replace

from playwright.sync_api import Page, expect

from numakin.placement.model.cpuset import CpuSet
from tests.extender.running import Extender, reservation
from tests.machines import EPYC_NPS1
from tests.web.axe import faults


def test_they_are_shown_with_their_room_and_those_that_are_too_busy(extender: Extender, page: Page) -> None:
    first, second = CpuSet.parse("0-3,32-35"), CpuSet.parse("4-7,36-39")
    members = [
        replace(reservation(uid, "0", milli=milli), cache_domain=cache)
        for uid, milli, cache in (("a", 1500, first), ("b", 500, first), ("c", 4000, second))
    ]
    extender.enforcer("epyc").report(EPYC_NPS1, *members, hot={str(second): True})
    page.goto(f"http://{extender.web_address}/#view=nodes&node=epyc")
    caches = page.get_by_role("list", name="Caches of NUMA 0").get_by_role("listitem")
    expect(caches).to_have_text([
        "members kept within the cache of CPUs 0-3,32-35: 2 of 8 CPUs requested",
        "members kept within the cache of CPUs 4-7,36-39: 4 of 8 CPUs requested, too busy for more",
    ])  # fmt: skip
    expect(page.get_by_role("list", name="Caches of NUMA 1")).to_have_count(0)
    assert faults(page) == ""
