"""How an extender ends: asked to, it writes down at once what it has learned; killed, it loses a minute's at most."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from numakin.wire import report_pb2 as pb
from tests.extender.running import Enforcer, Extender, machine, reservation
from tests.manifests.rendered import files, one

WORKLOADS = ("web", "cart", "db")
NODE = "n1"
PACE = ("--retry-period", "0.2", "--publish-period", "0.2")


class Site:
    """One extender, and the pods of a group on a node, whose enforcer tells who talks to whom."""

    def __init__(self, folder: Path, server: ApiServer) -> None:
        self.server = server
        server.define(one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io"))
        server.create_node(NODE)
        self.uids = {workload: self._pod(workload) for workload in WORKLOADS}
        kubeconfig = str(server.kubeconfig(folder / "kubeconfig"))
        options = ("--kubeconfig", kubeconfig, "--namespace", "default", *PACE)
        self.extender = Extender(folder, "--kube", *options)

    def enforcer(self) -> Enforcer:
        enforcer = self.extender.enforcer(NODE)
        enforcer.report(machine(), *(reservation(uid, "0") for uid in self.uids.values()))
        return enforcer

    def talk(self, enforcer: Enforcer, source: str, target: str) -> None:
        """Much, and up to where the extender knows of it."""
        flow = pb.Flow(source=self.uids[source], target=self.uids[target], kind="tcp", bytes=10**7, messages=10**4)
        enforcer.send(traffic=pb.Traffic(seconds=10, scale=1, flows=[flow], collector="cgroup_skb"))
        until(lambda: _edge(source, target) in self.known, "it is learned")

    @property
    def known(self) -> set[tuple[str, str]]:
        return {(edge["source"], edge["target"]) for edge in self.extender.get("/api/v1/graph")["edges"]}

    @property
    def written(self) -> set[tuple[str, str]]:
        """What the group's object says."""
        kind = self.server.answers.kind("numakin.io/v1alpha1", "affinitygroups")
        stored = self.server.store.get(kind, ("default", "shop"))
        status: dict[str, Any] = stored.object.get("status", {}) if stored else {}
        return {(edge["source"], edge["target"]) for edge in status.get("edges", ())}

    def _pod(self, workload: str) -> str:
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": workload, "uid": f"uid-{workload}"}
        pod = self.server.create_pod(f"{workload}-0", annotations={"group.numakin.io": "shop"}, owner=owner)
        self.server.bind(f"{workload}-0", NODE)
        self.server.set_phase(f"{workload}-0", "Running")
        return str(pod["metadata"]["uid"])


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ApiServer() as server:
        made = Site(tmp_path, server)
        yield made
        made.extender.stop()


def _edge(source: str, target: str) -> tuple[str, str]:
    return f"default/StatefulSet/{source}", f"default/StatefulSet/{target}"


FIRST, SECOND = _edge("web", "cart"), _edge("cart", "db")


@pytest.fixture
def enforcer(site: Site) -> Enforcer:
    """What it told first is written, and what it told next, within the same minute, is not yet."""
    result = site.enforcer()
    site.talk(result, "web", "cart")
    until(lambda: site.written == {FIRST}, "the first is written")
    site.talk(result, "cart", "db")
    assert site.written == {FIRST}
    return result


def test_an_extender_that_is_asked_to_end_writes_what_it_has_learned_at_once(site, enforcer):
    site.extender.end()
    assert site.written == {FIRST, SECOND}
    site.extender.start()
    until(lambda: site.known == {FIRST, SECOND}, "the next one knows it")


def test_one_that_is_killed_loses_nothing_older_and_learns_the_rest_again(site, enforcer):
    site.extender.kill()
    assert site.written == {FIRST}
    site.extender.start()
    until(lambda: site.known == {FIRST}, "the next one knows what was written")
    site.talk(site.enforcer(), "cart", "db")
    assert site.known == {FIRST, SECOND}


def test_a_lease_is_given_back_at_the_end(site, enforcer):
    site.extender.end()
    lease = site.server.get("coordination.k8s.io/v1", "leases", "numakin-extender", "default")
    assert lease["spec"]["holderIdentity"] == ""
