"""An operator's AffinityGroup object, from the API server to the enforcer's decision: the real programs between
stand-ins of all their neighbours.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.model.refusals import Refused
from lab.standins.machines import MACHINES
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from tests.extender.group_objects import DEFINITION, GROUPS, condition, pod, status, stored, until_watched
from tests.extender.running import Extender, machine, reservation, running, whole_report
from tests.trees import sysfs


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as first:
        first.define(DEFINITION)
        for node in ("n1", "n2"):
            first.create_node(node)
        yield first


@pytest.fixture
def extender(server: ApiServer, tmp_path: Path) -> Iterator[Extender]:
    options = ("--kubeconfig", str(server.kubeconfig(tmp_path / "kubeconfig")), "--namespace", "default", "--refuse")
    with running(tmp_path, "--kube", *options, "--publish-period", "0.2") as first:
        until_watched(server)
        yield first


def written(server: ApiServer, **spec: Any) -> dict[str, Any]:
    """The operator's object, once the extender has said what it makes of it: its condition."""
    try:
        server.create(GROUPS, "affinitygroups", {"metadata": {"name": "shop"}, "spec": spec}, "default")
    except Refused:  # the extender was faster
        server.patch(GROUPS, "affinitygroups", "shop", {"spec": spec}, namespace="default")
    return until(lambda: condition(server, "Accepted"), "the spec is judged")


def question(pod: dict[str, Any]) -> bytes:
    return json.dumps({"Pod": pod, "NodeNames": ["n1", "n2"]}).encode()


def events(server: ApiServer) -> list[dict[str, Any]]:
    kind = server.answers.kind("v1", "events")
    every = [entry.object for _, entry in server.store.snapshot(kind, server.store.revision) or ()]
    return [entry for entry in every if entry["involvedObject"]["kind"] == "AffinityGroup"]


def test_policy_and_size_are_those_of_the_object_where_the_pod_is_silent(extender: Extender, server: ApiServer):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    extender.enforcer("n2").report(machine())
    assert written(server, policy="single-numa-node", size=5)["status"] == "True"
    assert extender.post("filter", question(pod(server, "web-0", cpu="9")))["NodeNames"] == []
    assert len(extender.post("filter", question(pod(server, "web-1", cpu="9", policy="best-effort")))["NodeNames"]) == 2
    server.bind(pod(server, "web-2")["metadata"]["name"], "n1")
    expect = enforcer.next().expect
    assert [(container.policy, container.size) for container in expect.containers] == [("single-numa-node", 5)]
    assert expect.room_milli == 4 * 500


def test_a_workload_with_priority_draws_newcomers_from_a_greater_number(extender: Extender, server: ApiServer):
    homes = {"db-0": "n1", "web-0": "n2", "web-1": "n2"}
    uids = {name: pod(server, name)["metadata"]["uid"] for name in homes}
    for name, node in homes.items():
        server.bind(name, node)
        server.set_phase(name, "Running")
    for node in ("n1", "n2"):
        extender.enforcer(node).report(
            machine(), *(reservation(uids[name], "1") for name in homes if homes[name] == node)
        )
    asked = question(pod(server, "api-0"))
    scores = extender.scores(asked)
    assert scores["n2"] > scores["n1"]
    written(server, priorities=[{"workload": "StatefulSet/db", "priority": 10}])
    scores = extender.scores(asked)
    assert scores["n1"] > scores["n2"]
    server.delete(GROUPS, "affinitygroups", "shop", namespace="default")
    until(lambda: (result := extender.scores(asked)) and result["n2"] > result["n1"], "it is as before")
    until(lambda: status(server).get("memberCount"), "the group has an object again")
    assert "spec" not in stored(server)


def test_what_can_not_be_taken_is_told_and_costs_only_itself(extender: Extender, server: ApiServer):
    """The definition refuses such a spec; the object may be older than that."""
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    judged = written(server, policy="strict", size=5)
    problem = "spec.policy: 'strict' is not allowed; allowed: best-effort, restricted, single-numa-node, none"
    assert (judged["status"], judged["message"]) == ("False", problem)
    (event,) = until(lambda: events(server), "the Event is told")
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "NumaSpecIgnored", problem)
    assert event["involvedObject"]["uid"] == stored(server)["metadata"]["uid"]
    server.bind(pod(server, "web-0")["metadata"]["name"], "n1")
    assert [(container.policy, container.size) for container in enforcer.next().expect.containers] == [
        ("best-effort", 5)
    ]
    server.patch(GROUPS, "affinitygroups", "shop", {"spec": {"policy": "restricted"}}, namespace="default")
    until(lambda: condition(server, "Accepted")["status"] == "True", "it is fixed")


def test_the_status_comes_and_goes_and_the_spec_stays(extender: Extender, server: ApiServer):
    spec = {"size": 3, "priorities": [{"workload": "StatefulSet/db", "priority": 2}]}
    written(server, **spec)
    uid = pod(server, "web-0")["metadata"]["uid"]
    server.bind("web-0", "n1")
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), reservation(uid, "1"))
    until(lambda: status(server).get("homes") == "n1/1", "its member is told")
    server.delete("v1", "pods", "web-0", namespace="default", grace_s=0)
    enforcer.send(report=whole_report(2))
    until(lambda: status(server)["memberCount"] == 0, "it has none")
    result = stored(server)
    assert result["spec"] == spec
    applied = [
        asked.json() for asked in server.asked if asked.verb == "patch" and asked.kind.plural == "affinitygroups"
    ]
    assert applied
    assert not any("spec" in body for body in applied), "what is applied is owned"


class Node:
    """A real enforcer on a machine of its own, and its container runtime."""

    def __init__(self, folder: Path, extender: str) -> None:
        self._log = folder / "numakin.process.log"
        self.runtime = Runtime(folder / "nri.sock")
        self.runtime.start()
        command = [
            *(sys.executable, "-m", "enforcer", "run", "--node-name", "n1", "--metrics-listen", ""),
            *("--nri-socket", str(folder / "nri.sock"), "--run-dir", str(folder / "run")),
            *("--sysfs", str(sysfs("xeon-8380")), "--extender", extender, "--log-level", "debug"),
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stderr=log)
        self.runtime.wait_for_plugin(PATIENCE_S)

    def start(self, pod: dict[str, Any]) -> str:
        """The cpuset that its container gets, once the enforcer has heard what to expect."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        until(lambda: f"pod=default/{name}" in self._log.read_text(), "the enforcer expects it")
        sandbox = self.runtime.run_pod(name, "default", uid, pod["metadata"]["annotations"])
        return self.runtime.run_container(sandbox, "main", cpu_request=0.5).cpus

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        self.runtime.stop()


@pytest.fixture
def node(extender: Extender) -> Iterator[Node]:
    # Not tmp_path, since a unix socket's path is short.
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder:
        made = Node(Path(folder), extender.grpc_address)
        yield made
        made.close()


def test_the_enforcer_decides_by_the_object_too(extender: Extender, server: ApiServer, node: Node):
    until(lambda: extender.get("/api/v1/nodes")["nodes"], "the enforcer has reported")
    written(server, policy="none")
    left_open = pod(server, "web-0")
    server.bind("web-0", "n1")
    assert node.start(left_open) == ""
    own = pod(server, "web-1", policy="best-effort")
    server.bind("web-1", "n1")
    # Which one it is, is the busy machine's that the tests run on.
    assert node.start(own) in {str(numa_node.cpus) for numa_node in MACHINES["xeon-8380"].machine.numa_nodes}
