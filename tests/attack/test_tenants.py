"""A tenant sends traffic to another tenant's pods, or writes that it did: neither's next replica is drawn to the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from proto import report_pb2 as pb
from standins.apiserver import ApiServer
from tests.extender.running import Extender, machine, reservation, running, until
from tests.manifests.rendered import files, one

VICTIM, ATTACKER = "victim", "attacker"
ADDRESSES = {VICTIM: "10.0.0.1", ATTACKER: "10.0.0.2"}
MAIN = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
GROUPS = ("numakin.io/v1alpha1", "affinitygroups")


@dataclass
class Site:
    server: ApiServer
    extender: Extender

    def replica(self, namespace: str, number: int, node: str = "") -> str:
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": f"{namespace}-web"}
        annotations = {"group.numakin.io": "shop"}
        name = f"web-{number}"
        pod = self.server.create_pod(name, namespace, annotations=annotations, containers=[MAIN], owner=owner)
        if node:
            self.server.bind(name, node, namespace)
            self.server.set_phase(name, "Running", namespace, podIP=ADDRESSES[namespace])
        return str(pod["metadata"]["uid"])

    def scores_of_next(self, namespace: str) -> dict[str, int]:
        self.replica(namespace, 9)
        pod = self.server.get("v1", "pods", "web-9", namespace)
        return self.extender.scores(json.dumps({"Pod": pod, "NodeNames": ["n1", "n2"]}).encode())


def site(folder: Path, *options: str) -> Iterator[Site]:
    """The victim's first replica is on n1, the attacker's on n2, and it floods the victim's with traffic."""
    with ApiServer() as server:
        server.define(one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io"))
        for node in ("n1", "n2"):
            server.create_node(node)
        kubeconfig = str(server.kubeconfig(folder / "kubeconfig"))
        with running(folder, "--kube", "--kubeconfig", kubeconfig, "--namespace", "default", *options) as extender:
            made = Site(server, extender)
            uids = {VICTIM: made.replica(VICTIM, 0, "n1"), ATTACKER: made.replica(ATTACKER, 0, "n2")}
            for node, namespace in (("n1", VICTIM), ("n2", ATTACKER)):
                enforcer = extender.enforcer(node)
                enforcer.report(machine(), reservation(uids[namespace], "0", group=f"{namespace}/shop"))
            flow = pb.Flow(
                source=uids[ATTACKER], target=f"{ADDRESSES[VICTIM]}:80", kind="tcp", bytes=10**9, messages=10**6
            )
            enforcer.send(traffic=pb.Traffic(seconds=10, scale=1, flows=[flow], collector="cgroup_skb"))
            until("the traffic is known", lambda: extender.get("/api/v1/graph")["edges"])
            yield made


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Site]:
    yield from site(tmp_path)


@pytest.fixture
def joined(tmp_path: Path) -> Iterator[Site]:
    yield from site(tmp_path, "--joined-namespaces", f"{VICTIM}+{ATTACKER}")


@pytest.mark.parametrize("namespace", [VICTIM, ATTACKER])
def test_traffic_between_tenants_draws_nobody(apart, namespace):
    """Each follows its own first replica alone."""
    own, other = ("n1", "n2") if namespace == VICTIM else ("n2", "n1")
    scores = apart.scores_of_next(namespace)
    assert scores[own] > scores[other]


def reasons(site: Site) -> str:
    """Why the attacker's next replica has its score on the victim's node."""
    explained = site.extender.get(f"/api/v1/explain?namespace={ATTACKER}&pod=web-9")
    return next(" ".join(row["reasons"]) for row in explained["scored"]["nodes"] if row["node"] == "n1")


def test_the_victim_is_no_reason_for_the_attacker_s_score(apart):
    apart.scores_of_next(ATTACKER)
    assert "its kin are near" not in reasons(apart)


def test_kin_of_joined_namespaces_count(joined):
    """So the traffic above would have counted, had it been allowed to."""
    joined.scores_of_next(ATTACKER)
    assert "its kin are near" in reasons(joined)


def edges(extender: Extender) -> set[tuple[str, str]]:
    return {(edge["source"], edge["target"]) for edge in extender.get("/api/v1/graph")["edges"]}


def test_what_one_namespace_s_object_says_of_another_s_workloads_is_not_learned(tmp_path):
    ours, theirs = (
        ("attacker/StatefulSet/a", "attacker/StatefulSet/b"),
        ("victim/StatefulSet/a", "victim/StatefulSet/b"),
    )
    text = json.dumps({
        "version": 1, "names": [*ours, *theirs], "members": [], "edges": [[0, 1, "tcp", 1e6, 1e3], [2, 3, "tcp", 1e9, 1e6]],
    })  # fmt: skip
    with ApiServer() as server:
        server.define(one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io"))
        server.create("v1", "namespaces", {"metadata": {"name": ATTACKER}})
        server.create(*GROUPS, {"metadata": {"name": "shop"}}, ATTACKER)
        server.patch(*GROUPS, "shop", {"status": {"learned": text}}, namespace=ATTACKER, subresource="status")
        kubeconfig = str(server.kubeconfig(tmp_path / "kubeconfig"))
        with running(tmp_path, "--kube", "--kubeconfig", kubeconfig, "--namespace", "default") as extender:
            until("its own edge is learned", lambda: ours in edges(extender))
            assert edges(extender) == {ours}
