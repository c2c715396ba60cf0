"""Two replicas of the extender, fed by a real enforcer: losing one loses no scheduling, losing both nothing learned."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.placement.traffic.graph import Flow
from numakin.placement.traffic.window import Window
from numakin.process.ports import free_port
from tests.extender.running import Extender
from tests.manifests.rendered import files, one
from tests.titled import children
from tests.trees import sysfs

NODE = "n1"
GROUP = {"group.numakin.io": "shop"}
TALK = {("default/StatefulSet/web", "default/StatefulSet/db"), ("default/StatefulSet/db", "default/StatefulSet/web")}
TERMS = ("--lease-duration", "6", "--renew-deadline", "5", "--retry-period", "0.5", "--publish-period", "0.2")
TAKEN_OVER_S = 2 * PATIENCE_S
"""A Lease that runs out 6 s after its holder is gone, and is looked at every half second."""


class Replica:
    """One process of the extender, on a gRPC port that outlives it."""

    def __init__(self, folder: Path, server: ApiServer, port: int) -> None:
        folder.mkdir()
        options = ("--kubeconfig", str(server.kubeconfig(folder / "kubeconfig")), "--namespace", "default", *TERMS)
        self.extender = Extender(folder, "--kube", *options, "--grpc-listen", f"127.0.0.1:{port}")

    @property
    def leading(self) -> bool:
        return "numakin_extender_leading 1.0" in self.extender.get("/metrics")

    @property
    def members(self) -> set[str]:
        result = [group["members"] for group in self.extender.get("/api/v1/groups")["groups"]]
        return {member["pod"] for members in result for member in members if not member["expected"]}

    @property
    def edges(self) -> set[tuple[str, str]]:
        return {(edge["source"], edge["target"]) for edge in self.extender.get("/api/v1/graph")["edges"]}

    def happened(self, pod: str) -> list[dict[str, Any]]:
        """What it tells of the enforcer's decisions on the pod."""
        status, answer = self.extender.ask("GET", f"/api/v1/explain?namespace=default&pod={pod}")
        return answer["happened"] if status == 200 else []


class Site:
    """An API server, a node with its runtime and its enforcer, and two replicas."""

    def __init__(self, folder: Path, server: ApiServer) -> None:
        self._folder, self.server = folder, server
        self._ports = [free_port() for _ in range(2)]
        server.define(one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io"))
        server.create_node(NODE)
        self.runtime = Runtime(folder / "nri.sock")
        self.runtime.start()
        self.replicas: list[Replica] = []
        for at in range(2):
            self.start_replica(at)
        uids = [self._created(name) for name in ("web-0", "db-0")]
        self.enforcer = self._enforcer(*uids)
        self.runtime.wait_for_plugin(PATIENCE_S)
        for name, uid in zip(("web-0", "db-0"), uids, strict=True):
            self._run(name, uid)

    def start_replica(self, at: int) -> Replica:
        replica = Replica(self._folder / f"replica-{len(self.replicas)}", self.server, self._ports[at])
        self.replicas.append(replica)
        return replica

    def run_pod(self, name: str) -> None:
        """From its creation to its container's start."""
        self._created(name)
        self.run_created(name)

    def run_created(self, name: str) -> None:
        """From its binding to its container's start."""
        self._run(name, str(self.server.get("v1", "pods", name, "default")["metadata"]["uid"]))

    def question(self, name: str) -> bytes:
        """What kube-scheduler asks of a new pod."""
        self._created(name)
        pod = self.server.get("v1", "pods", name, "default")
        return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": [NODE, "n2"]}).encode()

    @property
    def status(self) -> dict[str, Any]:
        """Of the group's object, empty while there is none."""
        kind = self.server.answers.kind("numakin.io/v1alpha1", "affinitygroups")
        stored = self.server.store.get(kind, ("default", "shop"))
        return stored.object.get("status", {}) if stored else {}

    @property
    def leaders(self) -> list[Replica]:
        return [replica for replica in self.replicas if replica.leading]

    @property
    def told_on(self) -> set[str]:
        """The pods that have an Event."""
        store = self.server.store
        rows = store.snapshot(self.server.answers.kind("v1", "events"), store.revision) or []
        return {stored.object["involvedObject"]["name"] for _, stored in rows}

    def kill_observer(self) -> None:
        """The enforcer starts another."""
        os.kill(children(self.enforcer.pid)["observer"], signal.SIGKILL)

    def close(self) -> None:
        self.enforcer.terminate()
        self.enforcer.wait(PATIENCE_S)
        for replica in self.replicas:
            replica.extender.stop()
        self.runtime.stop()

    def _created(self, name: str) -> str:
        """The uid of a new pod of a StatefulSet."""
        workload = name.rpartition("-")[0]
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": workload, "uid": f"uid-{workload}"}
        main = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "2"}}}
        return str(self.server.create_pod(name, annotations=GROUP, containers=[main], owner=owner)["metadata"]["uid"])

    def _run(self, name: str, uid: str) -> None:
        self.server.bind(name, NODE)
        self.runtime.run_container(self.runtime.run_pod(name, "default", uid, GROUP), "main", cpu_request=2)
        self.server.set_phase(name, "Running")

    def _enforcer(self, web: str, db: str) -> subprocess.Popen[bytes]:
        """It sees the two pods talk all the time."""
        flows = (Flow(web, db, "tcp", 50_000, 500), Flow(db, web, "tcp", 90_000, 500))
        recording = self._folder / "recording"
        recording.write_text("".join(Window(1.0, flows).to_json() + "\n" for _ in range(600)))
        command = [
            *(sys.executable, "-m", "enforcer", "run", "--node-name", NODE, "--metrics-listen", ""),
            *("--nri-socket", str(self._folder / "nri.sock"), "--run-dir", str(self._folder / "run")),
            *("--sysfs", str(sysfs("xeon-8380")), "--replay", str(recording), "--window-s", "1"),
            *("--extender", ",".join(f"127.0.0.1:{port}" for port in self._ports)),
        ]
        with (self._folder / "numakin.process.log").open("wb") as log:
            return subprocess.Popen(command, stderr=log)


@pytest.fixture
def site() -> Iterator[Site]:
    # Not tmp_path, since a unix socket's path is short.
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder, ApiServer() as server:
        made = Site(Path(folder), server)
        yield made
        made.close()


def test_every_replica_is_fed_and_answers_alike(site):
    for replica in site.replicas:
        until(lambda entry=replica: entry.members == {"default/web-0", "default/db-0"}, "it has heard of both pods")
        until(lambda entry=replica: entry.edges == TALK, "it has learned who talks to whom")
    question = site.question("web-1")
    answers = [replica.extender.scores(question) for replica in site.replicas]
    assert answers[0] == answers[1]
    assert answers[0][NODE] > answers[0]["n2"]


def test_when_the_one_that_writes_is_killed_the_other_answers_at_once_and_writes_on(site):
    until(lambda: site.status.get("edgeCount") == 2, "something learned is published")
    until(lambda: all(len(replica.members) == 2 for replica in site.replicas), "both have heard")
    (leader,) = until(lambda: len(leaders := site.leaders) == 1 and leaders, "one of them writes")
    (other,) = [replica for replica in site.replicas if replica is not leader]
    question = site.question("web-1")
    before = leader.extender.scores(question)
    leader.extender.kill()
    assert other.extender.scores(question) == before
    site.run_created("web-1")
    until(lambda: site.status["memberCount"] == 3, "the group's new member is published", TAKEN_OVER_S)
    assert other.leading
    assert {(edge["source"], edge["target"]) for edge in site.status["edges"]} == TALK


def test_what_was_learned_outlives_all_replicas_and_the_node(site):
    until(lambda: site.status.get("edgeCount") == 2, "something learned is published")
    learned = site.status["learned"]
    for replica in site.replicas:
        replica.extender.kill()
    site.enforcer.kill()
    site.enforcer.wait(PATIENCE_S)
    written = site.server.done("patch", "affinitygroups")
    fresh = site.start_replica(0)
    until(lambda: fresh.edges == TALK, "it knows who talks to whom")
    until(lambda: site.server.done("patch", "affinitygroups") > written, "it writes", TAKEN_OVER_S)
    assert site.status["learned"] == learned


@pytest.mark.parametrize(
    "observer_too", [False, True], ids=["the extender", "the extender and the enforcer's observer"]
)
def test_why_a_pod_is_where_it_is_outlives_all_replicas_and_is_no_news_to_the_next(site, observer_too):
    until(lambda: site.leaders, "one of them writes")
    site.run_pod("web-1")
    (happened,) = until(lambda: site.replicas[0].happened("web-1"), "it says why")
    assert happened["reasons"]
    until(lambda: "web-1" in site.told_on, "the Event is written")
    for replica in site.replicas:
        replica.extender.kill()
    if observer_too:
        site.kill_observer()
    received = site.server.count("create", "events")
    fresh = site.start_replica(0)
    until(lambda: fresh.happened("web-1") == [happened], "it says why")
    until(lambda: fresh.leading, "it writes", TAKEN_OVER_S)
    assert site.server.count("create", "events") == received
    assert "numakin_extender_predictions_total{outcome=" not in fresh.extender.get("/metrics")
