"""A tenant sends traffic to another tenant's pods, or writes that it did: neither's next replica is drawn to the other."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from numakin.placement.traffic.graph import Flow
from numakin.placement.traffic.window import Window
from numakin.wire import report_pb2 as pb
from tests.attack.operated import Site as Node
from tests.extender.group_objects import until_watched
from tests.extender.running import Extender, machine, reservation, running
from tests.manifests.rendered import files, one

VICTIM, ATTACKER = "victim", "attacker"
ADDRESSES = {VICTIM: "10.0.0.1", ATTACKER: "10.0.0.2"}
MAIN = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
GROUPS = ("numakin.io/v1alpha1", "affinitygroups")


@dataclass
class Site:
    server: ApiServer
    extender: Extender
    asked: set[tuple[str, int]] = field(default_factory=set)

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
        if (namespace, 9) not in self.asked:
            self.asked.add((namespace, 9))
            self.replica(namespace, 9)
        pod = self.server.get("v1", "pods", "web-9", namespace)
        return self.extender.scores(json.dumps({"Pod": pod, "NodeNames": ["n1", "n2"]}).encode())


def site(folder: Path, affinity_with: Mapping[str, str] = {}) -> Iterator[Site]:
    """The victim's first replica is on n1, the attacker's on n2, and it floods the victim's with traffic.
    affinity_with: the Namespace objects' annotation, by name.
    """
    with ApiServer() as server:
        for name in (VICTIM, ATTACKER):
            annotations = {"numakin.io/affinity-with": affinity_with[name]} if name in affinity_with else {}
            server.create("v1", "namespaces", {"metadata": {"name": name, "annotations": annotations}})
        server.define(one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io"))
        for node in ("n1", "n2"):
            server.create_node(node)
        kubeconfig = str(server.kubeconfig(folder / "kubeconfig"))
        with running(folder, "--kube", "--kubeconfig", kubeconfig, "--namespace", "default") as extender:
            until_watched(server)
            made = Site(server, extender)
            uids = {VICTIM: made.replica(VICTIM, 0, "n1"), ATTACKER: made.replica(ATTACKER, 0, "n2")}
            for node, namespace in (("n1", VICTIM), ("n2", ATTACKER)):
                enforcer = extender.enforcer(node)
                enforcer.report(machine(), reservation(uids[namespace], "0", group=f"{namespace}/shop"))
            flow = pb.Flow(
                source=uids[ATTACKER], target=f"{ADDRESSES[VICTIM]}:80", kind="tcp", bytes=10**9, messages=10**6
            )
            enforcer.send(traffic=pb.Traffic(seconds=10, scale=1, flows=[flow], collector="cgroup_skb"))
            until(lambda: extender.get("/api/v1/graph")["edges"], "the traffic is known")
            yield made


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Site]:
    yield from site(tmp_path)


@pytest.fixture
def joined(tmp_path: Path) -> Iterator[Site]:
    """An operator has set on both Namespace objects that each allows the other."""
    yield from site(tmp_path, {VICTIM: ATTACKER, ATTACKER: VICTIM})


@pytest.fixture
def half(tmp_path: Path) -> Iterator[Site]:
    """The attacker's side allows it alone."""
    yield from site(tmp_path, {ATTACKER: "*"})


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


def test_what_the_attacker_s_side_alone_allows_draws_nobody(half):
    half.scores_of_next(ATTACKER)
    assert "its kin are near" not in reasons(half)


def test_kin_of_namespaces_that_allow_each_other_count(joined):
    """So the traffic above would have counted, had it been allowed to; and it counts no more once one side says so."""
    joined.scores_of_next(ATTACKER)
    assert "its kin are near" in reasons(joined)
    joined.server.patch("v1", "namespaces", VICTIM, {"metadata": {"annotations": {"numakin.io/affinity-with": None}}})

    def apart_again() -> bool:
        joined.scores_of_next(ATTACKER)
        return "its kin are near" not in reasons(joined)

    until(apart_again, "the victim's namespace is by itself")


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
            until(lambda: ours in edges(extender), "its own edge is learned")
            assert edges(extender) == {ours}


def test_on_a_node_members_of_two_namespaces_come_together_once_both_allow_it(tmp_path):
    """By what is sent to the enforcer, which learns from its own node's traffic."""
    talk = (Flow("uid-a", "uid-b", "tcp", 50_000, 500), Flow("uid-b", "uid-a", "tcp", 90_000, 500))
    (tmp_path / "recording").write_text((Window(1.0, talk).to_json() + "\n") * 3)
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder:
        replay = ("--replay", str(tmp_path / "recording"), "--window-s", "1")
        node = Node(Path(folder), *replay, nri_version="0.12.1")
        try:
            members = [
                node.runtime.run_container(
                    node.runtime.run_pod("web", node.namespace(name), f"uid-{name}", {"group.numakin.io": "shop"}),
                    "main",
                    cpu_request=2,
                )
                for name in ("a", "b")
            ]
            assert len({node.cpus(member) for member in members}) == 2
            node.annotate("a", affinity_with="b")
            node.annotate("b", affinity_with="a")
            until(lambda: len({node.cpus(member) for member in members}) == 1, "they are together")
        finally:
            node.close()
