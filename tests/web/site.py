"""A live cluster to look at: the real extender, the enforcers' own agents, recorded applications; and a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Playwright

from benchmarks.cluster import load
from benchmarks.cluster.driver import Cluster, Plan
from lab.standins.patience import PATIENCE_S, until

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, PROGRAMS)), None)
"""All draw and run a page alike; the first has nothing around it and takes less than half of the others' CPU time."""

OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
"""Root has no sandbox; and nothing but what the tests ask for goes out."""


@dataclass
class Site:
    """The page of a running extender, and the cluster behind it."""

    cluster: Cluster

    @cached_property
    def url(self) -> str:
        return f"http://{self.cluster.extender.web}/"

    def get(self, path: str) -> Any:
        return self.cluster.extender.get(f"/api/v1/{path}")

    def talk(self) -> None:
        """What all pods say to each other in a minute, up to where the extender has learned it."""
        self.cluster.talk(list(self.cluster.pods), requests=6000, seconds=60, windows=3)
        until(lambda: self.get("overview")["share"], "traffic is learned")


@contextmanager
def running(folder: Path) -> Iterator[Site]:
    """Four machines; two applications and one that no NUMA node holds, and groups with exclusive CPUs."""
    with Cluster(folder, Plan(nodes=4, kubelet_s=PATIENCE_S)) as cluster:
        site = Site(cluster)
        cluster.place(load.arrivals([load.wide(), *load.instances(2, cluster.random)], cluster.random))
        cluster.place(load.crowd(8, cluster.random))
        site.talk()
        yield site


def browser(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
