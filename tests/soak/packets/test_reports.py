"""A real enforcer reports to a real extender over a link that scrambles packets, and the extender misses nothing."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lab.standins.extender import ExtenderProcess
from lab.standins.patience import PATIENCE_S, until
from numakin.process.ports import free_address
from tests.soak.faults import PACKETS
from tests.soak.nodes import EmbeddedNode, Uplink, status
from tests.soak.packets import namespaces
from tests.soak.packets.link import Link
from tests.soak.packets.scrambling import Counts, Shares
from tests.soak.pods import Kind, PodSpec

pytestmark = pytest.mark.skipif(bool(namespaces.missing()), reason=f"needs a link: {namespaces.missing()}")

PODS = 12
"""That come and go in a round."""


class Site:
    """One node, and the extender at the other end of a link: no proxy between."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.link = stack.enter_context(Link())
        address = f"{self.link.extender.address}:{free_address().rpartition(':')[2]}"
        options, python = ("--no-kube", "--report-timeout", "3600"), (*self.link.extender.command, sys.executable)
        self._extender = ExtenderProcess(folder, options, grpc=address, python=python)
        stack.callback(self._extender.end)
        self._extender.start()
        self.node = EmbeddedNode("n1", folder, Uplink(address, self.link.node.command), stack)

    def view(self) -> dict[str, Any]:
        """What the extender has of the node; {} before it was heard of."""
        return next(iter(self._ask("/api/v1/nodes")["nodes"]), {})

    def decided(self, pod: str) -> list[str]:
        """The cpusets that the extender knows a pod's containers were created with."""
        told = self._ask(f"/api/v1/explain?namespace=soak&pod={pod}")["happened"]
        return [each["cpus"] for each in told if each["event"] == "create"]

    def reported(self) -> bool:
        """Whether the extender has the node as it is."""
        here, there = status(self.node), self.view()
        return bool(here.get("registered") and there.get("live") and there.get("generation") == here["generation"])

    def _ask(self, path: str) -> Any:
        with (
            self.link.extender.entered(),
            urllib.request.urlopen(f"http://{self._extender.web}{path}", timeout=PATIENCE_S) as answer,
        ):
            return json.load(answer)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        made = Site(tmp_path, stack)
        until(made.reported, "the first report")
        yield made


@pytest.mark.parametrize("shares", PACKETS.values(), ids=PACKETS)
def test_every_report_arrives_through_scrambled_packets(site: Site, shares: Shares) -> None:
    """As many rounds as it takes until each kind of disorder has come."""
    numbers = count()
    with site.link.scrambled(shares, seed=1):
        while _spared(shares, site.link.counts()):
            names = [f"p{next(numbers)}" for _ in range(PODS)]
            running = {name: site.node.run(PodSpec(name, Kind.SHARED, "cart", 1), name) for name in names}
            until(site.reported, "the report of the pods")
            assert site.view()["pods"] == PODS
            for name, container in running.items():
                assert site.decided(name) == [str(site.node.cpus(container))]
                site.node.end(container)
            until(site.reported, "the report without them")
            assert site.view()["pods"] == 0


def _spared(shares: Shares, counts: Counts) -> bool:
    """Whether one of the shares has not had a packet yet."""
    had = ((shares.lost, counts.lost), (shares.duplicated, counts.duplicated), (shares.reordered, counts.overtaken))
    return any(share and not packets for share, packets in had)
