"""The pictures of docs/screens, taken anew: python -m tests.web.screens."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from numakin.wire import report_pb2 as pb
from tests.extender.running import Enforcer
from tests.web import site as sites
from tests.web.site import Site

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screens"
SIZE = {"width": 1360, "height": 850}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sites.running(Path(folder)) as site, sync_playwright() as playwright:
        browser = sites.browser(playwright)
        health = _reported(site)
        for name, (place, scheme) in _places(site).items():
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)
            page.goto(site.url + place)
            expect(page.locator(".room, .list").first).to_be_visible()
            _settled(page, site)
            page.screenshot(path=FOLDER / f"{name}.png")
            page.close()
        browser.close()
        health.close()


def _places(site: Site) -> dict[str, tuple[str, str]]:
    groups = [row["group"] for row in site.get("overview")["groups"]]
    pod = site.get(f"group?group={groups[0]}")["members"][3]["pod"]
    return {
        "map": ("#view=map", "light"),
        "pod": (f"#view=map&pod={pod}", "light"),
        "group": (f"#view=map&group={groups[0]}", "dark"),
        "node": (f"#view=nodes&node={_node(site)}", "light"),
    }


def _reported(site: Site) -> Enforcer:
    """What the simulated nodes do not send: the health of the node that is shown, with its devices."""
    enforcer = Enforcer(site.cluster.extender.grpc, _node(site), "health")
    threads = [pb.ThreadHealth(name=name, since_success_s=1) for name in ("census", "metrics port", "replicas")]
    devices = [
        pb.Device(address="0000:01:00.0", kind="network", driver="mlx5_core", names=["eth0", "mlx5_0"], numa_node=0),
        pb.Device(address="0000:41:00.0", kind="storage", driver="nvme", names=["nvme0"], numa_node=1),
        pb.Device(address="0000:42:00.0", kind="storage", driver="nvme", names=["nvme1"], numa_node=1),
        pb.Device(address="0000:81:00.0", kind="graphics", driver="amdgpu", names=["card1"], numa_node=2),
        pb.Device(address="0000:c1:00.0", kind="graphics", driver="amdgpu", names=["card2"], numa_node=3),
    ]
    health = pb.Health(
        collector="fexit", runtime="registered with the container runtime", threads=threads, devices=devices
    )
    enforcer.send(heartbeat=pb.Heartbeat(health=health))
    return enforcer


def _node(site: Site) -> str:
    return str(max(site.get("overview")["nodes"], key=lambda row: row["exclusive"])["name"])


def _settled(page: Page, site: Site) -> None:
    """Lines are drawn once the rooms are laid out."""
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    site.talk()
    page.wait_for_load_state("load")


if __name__ == "__main__":
    main()
