"""A running extender between an API server and two nodes, and a group that is cut over them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from tests.extender.group_objects import DEFINITION, pod, until_watched
from tests.extender.running import Enforcer, Extender, machine, reservation, running

PLACES = {"web-0": ("n1", "0"), "web-1": ("n1", "0"), "web-2": ("n1", "0"), "db-0": ("n2", "1")}
"""default/shop: three on n1, one on n2."""


@dataclass(frozen=True)
class Cut:
    """uids: of its pods, by name."""

    extender: Extender
    server: ApiServer
    uids: dict[str, str]
    enforcers: dict[str, Enforcer]

    def found(self) -> dict[str, Any]:
        """The one group that is cut; empty while none is known to be."""
        groups = self.extender.get("/api/v1/regroup")["groups"]
        return groups[0] if groups else {}

    def planned(self) -> dict[str, Any]:
        return until(lambda: self.found().get("plan"), "a plan is found")


@contextmanager
def cut_group(folder: Path) -> Iterator[Cut]:
    with ApiServer() as server:
        server.define(DEFINITION)
        for node in ("n1", "n2"):
            server.create_node(node)
        options = ("--kubeconfig", str(server.kubeconfig(folder / "kubeconfig")), "--namespace", "default")
        with running(folder, "--kube", *options, "--publish-period", "0.2", "--regroup-period", "0.2") as extender:
            until_watched(server)
            yield Cut(extender, server, made := _pods(server), _enforcers(extender, made))


def _pods(server: ApiServer) -> dict[str, str]:
    uids = {name: pod(server, name)["metadata"]["uid"] for name in PLACES}
    for name, (node, _) in PLACES.items():
        server.bind(name, node)
        server.set_phase(name, "Running")
    return uids


def _enforcers(extender: Extender, uids: dict[str, str]) -> dict[str, Enforcer]:
    enforcers = {node: extender.enforcer(node) for node in ("n1", "n2")}
    for node, enforcer in enforcers.items():
        there = [reservation(uids[name], home, milli=500) for name, (on, home) in PLACES.items() if on == node]
        enforcer.report(machine(), *there)
    return enforcers
