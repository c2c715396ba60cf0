"""The devices of a node, beside the NUMA nodes that they are near to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from numakin.wire import report_pb2 as pb
from tests.extender.running import Extender, machine, running
from tests.web.axe import faults

DEVICES = [
    pb.Device(address="0000:01:00.0", kind="storage", driver="nvme", names=["nvme0"], numa_node=0),
    pb.Device(address="0000:00:1f.2", kind="storage", driver="ahci"),
    pb.Device(address="0000:81:00.0", kind="network", driver="mlx5_core", names=["eth0", "mlx5_0"], numa_node=1),
    pb.Device(address="0000:c1:00.0", kind="graphics", numa_node=1),
]


@pytest.fixture
def extender(tmp_path: Path) -> Iterator[Extender]:
    with running(tmp_path) as running_extender:
        enforcer = running_extender.enforcer("n1")
        enforcer.report(machine())
        health = pb.Health(collector="fexit", runtime="registered", devices=DEVICES, devices_left_out=7)
        enforcer.send(heartbeat=pb.Heartbeat(generation=1, health=health))
        yield running_extender


def test_each_is_shown_beside_its_numa_node(extender: Extender, page: Page) -> None:
    page.goto(f"http://{extender.web_address}/#view=nodes&node=n1")
    near = page.get_by_role("complementary").locator(".numa")
    expect(near.filter(has_text="NUMA 0")).to_contain_text("storage: nvme0")
    expect(near.filter(has_text="NUMA 1")).to_contain_text("network: eth0 mlx5_0; graphics: 0000:c1:00.0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_are_listed_by_numa_node_those_on_none_last(extender: Extender, page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"http://{extender.web_address}/#view=nodes&node=n1")
    table = page.get_by_role("region", name="Devices")
    expect(table.locator("tbody th")).to_have_text(["0000:01:00.0", "0000:81:00.0", "0000:c1:00.0", "0000:00:1f.2"])
    expect(table.get_by_role("row", name="0000:00:1f.2")).to_contain_text("not known")
    expect(
        page.get_by_text("4 PCI devices for network, storage, graphics or computing; 7 more are not shown.")
    ).to_be_visible()
    assert faults(page) == ""
