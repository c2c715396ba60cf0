"""The real extender brings a group together again between an API server and nodes: one eviction, with its room held."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.faults import Answer, Cut
from lab.standins.patience import PATIENCE_S, until
from numakin.kubectl.apiserver import connect
from numakin.kubectl.commands import regroup
from numakin.kubectl.evicting import Evicting
from numakin.kubectl.reach import Direct
from tests.extender.group_objects import DEFINITION
from tests.extender.running import Extender, machine, reservation, running

NODES = ("n1", "n2")
PLACES = {"web-0": ("n1", "0"), "web-1": ("n1", "0"), "web-2": ("n1", "0"), "web-3": ("n2", "1")}
REFUSED = Answer(
    429,
    json.dumps({"kind": "Status", "status": "Failure", "reason": "TooManyRequests", "code": 429,
                "message": "Cannot evict pod as it would violate the pod's disruption budget."}).encode(),
    {"Content-Type": "application/json"},
)  # fmt: skip


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as first:
        first.define(DEFINITION)
        for node in NODES:
            first.create_node(node)
        yield first


@contextmanager
def extending(server: ApiServer, folder: Path, *options: str) -> Iterator[Extender]:
    folder.mkdir(exist_ok=True)
    way = ("--kubeconfig", str(server.kubeconfig(folder / "kubeconfig")), "--namespace", "default")
    lease = ("--lease-duration", "2", "--renew-deadline", "1.5", "--retry-period", "0.2")
    with running(folder, "--kube", *way, *lease, "--publish-period", "0.2", "--regroup-period", "0.2", *options) as one:
        yield one


def member(server: ApiServer, name: str, node: str = "") -> str:
    """Its uid. Bound, running and ready where a node is given."""
    annotations = {"group.numakin.io": "shop", "regroup.numakin.io": "evict"}
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "w"}
    made = server.create_pod(name, annotations=annotations, containers=containers, owner=owner)
    if node:
        up(server, name, node)
    return str(made["metadata"]["uid"])


def up(server: ApiServer, name: str, node: str) -> None:
    server.bind(name, node)
    server.set_phase(name, "Running", conditions=[{"type": "Ready", "status": "True"}])


def cut(server: ApiServer, extender: Extender, more: Mapping[str, tuple[str, str]] = {}) -> dict[str, str]:
    """shop: three on n1, one on n2, and more; their uids."""
    places = {**PLACES, **more}
    uids = {name: member(server, name, node) for name, (node, _) in places.items()}
    for node in NODES:
        there = [reservation(uids[name], home, milli=500) for name, (on, home) in places.items() if on == node]
        extender.enforcer(node).report(machine(), *there)
    return uids


def record(server: ApiServer) -> dict[str, Any]:
    stored = server.store.get(server.answers.kind("numakin.io/v1alpha1", "affinitygroups"), ("default", "shop"))
    annotations = (stored.object["metadata"].get("annotations") or {}) if stored is not None else {}
    return json.loads(annotations.get("numakin.io/regroup", "{}"))


def evictions(server: ApiServer) -> list[str]:
    return [request.name for request in server.asked if request.subresource == "eviction"]


def leaving(server: ApiServer, name: str) -> bool:
    return bool(server.get("v1", "pods", name, "default")["metadata"].get("deletionTimestamp"))


def scores(extender: Extender, server: ApiServer, name: str) -> dict[str, int]:
    """What kube-scheduler is answered for the pod."""
    pod = server.get("v1", "pods", name, "default")
    body = json.dumps({"Pod": pod, "NodeNames": list(NODES)}).encode()
    return {each["Host"]: each["Score"] for each in extender.post("prioritize", body)}


def replaced(server: ApiServer, name: str) -> None:
    """As a StatefulSet does: another pod of that name, once the one before is gone."""
    server.delete("v1", "pods", name, namespace="default", grace_s=0)
    member(server, name)


def test_the_pod_that_is_apart_is_evicted_once_its_room_is_held_and_the_one_in_its_place_is_scored_there(
    server: ApiServer, tmp_path: Path
):
    with extending(server, tmp_path, "--regroup", "evict") as extender:
        cut(server, extender)
        until(lambda: leaving(server, "web-3"), "the pod to be evicted")
        written = record(server)["step"]
        assert (written["pod"], written["node"], written["numa_node"]) == ("web-3", "n1", 0)
        replaced(server, "web-3")
        answered = until(lambda: (given := scores(extender, server, "web-3"))["n1"] == 10 and given, "it leads to n1")
        assert answered["n2"] <= 6
        up(server, "web-3", "n1")
        until(lambda: record(server).get("step", 1) is None, "the step to be over")
        assert evictions(server) == ["web-3"]
        told = until(lambda: {"NumaEvicted", "NumaRegrouped"} <= (found := reasons(server)) and found, "Events")
        assert "NumaNotEvicted" not in told
        lines = extender.get("/metrics").splitlines()
        assert 'numakin_extender_regroup_steps_total{outcome="came"} 1.0' in lines


def reasons(server: ApiServer) -> set[str]:
    events = server.store.snapshot(server.answers.kind("v1", "events"), server.store.revision) or []
    return {stored.object["reason"] for _, stored in events}


def test_by_default_nothing_is_evicted(server: ApiServer, tmp_path: Path):
    with extending(server, tmp_path) as extender:
        cut(server, extender)
        until(lambda: extender.get("/api/v1/regroup")["groups"], "the group to be found")
        until(lambda: record_of_status(server), "it to be published")
        assert evictions(server) == []
        assert record(server) == {}


def record_of_status(server: ApiServer) -> Any:
    stored = server.store.get(server.answers.kind("numakin.io/v1alpha1", "affinitygroups"), ("default", "shop"))
    return stored.object.get("status", {}).get("conditions") if stored is not None else None


def test_an_eviction_that_a_budget_refuses_is_asked_for_again(server: ApiServer, tmp_path: Path):
    server.order(REFUSED, resource="pods/eviction")
    with extending(server, tmp_path, "--regroup", "evict") as extender:
        cut(server, extender)
        until(lambda: evictions(server), "an eviction to be asked for")
        assert not leaving(server, "web-3")
        until(lambda: leaving(server, "web-3"), "the pod to be evicted")
        assert evictions(server) == ["web-3", "web-3"]


def test_another_replica_goes_on_after_a_crash_in_the_middle(server: ApiServer, tmp_path: Path):
    with extending(server, tmp_path / "first", "--regroup", "evict") as first:
        uids = cut(server, first)
        until(lambda: leaving(server, "web-3"), "the pod to be evicted")
        first.kill()
        with extending(server, tmp_path / "second", "--regroup", "evict") as second:
            for node in NODES:
                there = [reservation(uids[name], home, milli=500) for name, (on, home) in PLACES.items() if on == node]
                second.enforcer(node).report(machine(), *there)
            replaced(server, "web-3")
            until(lambda: scores(second, server, "web-3")["n1"] == 10, "the newcomer to be led to n1")
            up(server, "web-3", "n1")
            until(lambda: record(server).get("step", 1) is None, "the step to be over")
            assert evictions(server) == ["web-3"]


def a_person(server: ApiServer, extender: Extender, folder: Path, said: list[str]) -> Evicting:
    """With kubectl numakin, once there is a plan and its object."""
    until(lambda: extender.get("/api/v1/regroup?group=default/shop")["evictions"]["steps"], "a plan")
    until(lambda: record_of_status(server), "its object")
    api = connect(str(server.kubeconfig(folder / "admin")), "")
    return Evicting(api, Direct(f"http://{extender.web_address}"), "default/shop", said.append)


@pytest.mark.parametrize("written", ["", '{"step":"web-3"}'], ids=["nothing there", "no record"])
def test_a_person_carries_it_out_without_the_pods_saying_so(server: ApiServer, tmp_path: Path, written: str):
    """written: on the group's object before."""
    said: list[str] = []
    with extending(server, tmp_path) as extender:
        cut(server, extender)
        evicting = a_person(server, extender, tmp_path, said)
        annotated = {"metadata": {"annotations": {"numakin.io/regroup": written}}}
        server.patch("numakin.io/v1alpha1", "affinitygroups", "shop", annotated, namespace="default")

        def rest(_seconds: float) -> None:
            """The controller and kube-scheduler work meanwhile."""
            if leaving(server, "web-3"):
                replaced(server, "web-3")
                up(server, "web-3", "n1")

        rows = replace(evicting, sleep=rest).carry_out()
    assert [(row["pod"], row["done"]) for row in rows] == [("web-3", True)]
    assert said == ["evicting pod web-3; room for the one in its place is held on NUMA node 0 of n1"]


def test_a_person_needs_the_rights_that_the_help_names_and_no_more(server: ApiServer, tmp_path: Path):
    verbs = re.search(r"create pods/eviction there, and to ([a-z, ]+) AffinityGroups", regroup.EXAMPLES)
    assert verbs is not None
    rules = [
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
        {
            "apiGroups": ["numakin.io"],
            "resources": ["affinitygroups"],
            "verbs": re.findall(r"get|list|patch", verbs[1]),
        },
    ]
    with extending(server, tmp_path) as extender:
        cut(server, extender)
        evicting = a_person(server, extender, tmp_path, [])
        config = server.kubeconfig(tmp_path / "person", server.grant("person", rules))

        def rest(_seconds: float) -> None:
            if leaving(server, "web-3"):
                replaced(server, "web-3")
                up(server, "web-3", "n1")

        rows = replace(evicting, api=connect(str(config), ""), sleep=rest).carry_out()
    assert [(row["pod"], row["done"]) for row in rows] == [("web-3", True)]


@pytest.mark.parametrize("carried_out", [False, True])
def test_a_person_s_eviction_whose_answer_is_lost_is_asked_for_again(
    server: ApiServer, tmp_path: Path, *, carried_out: bool
):
    """carried_out: the pod was evicted all the same."""
    said: list[str] = []
    with extending(server, tmp_path) as extender:
        cut(server, extender)
        evicting = a_person(server, extender, tmp_path, said)
        server.order(Cut(), "create", "pods/eviction")

        def rest(_seconds: float) -> None:
            """The controller and kube-scheduler work meanwhile."""
            lost = bool(said) and "no answer" in said[-1] and not leaving(server, "web-3")
            if leaving(server, "web-3") or (lost and carried_out):
                replaced(server, "web-3")
                up(server, "web-3", "n1")

        rows = replace(evicting, sleep=rest).carry_out()
    assert [(row["pod"], row["done"]) for row in rows] == [("web-3", True)]
    assert any("no answer" in line for line in said)


@pytest.mark.parametrize("when", ["before the eviction", "between two that a budget refused"])
def test_an_interrupted_person_leaves_no_step_that_keeps_the_next_one_waiting(
    server: ApiServer, tmp_path: Path, when: str
):
    """^C: nothing is to be evicted any more, and no room is held for it until that is given up, after minutes."""
    server.order(REFUSED, resource="pods/eviction", times=100)
    with extending(server, tmp_path) as extender:
        cut(server, extender)
        evicting = a_person(server, extender, tmp_path, [])

        def rest(_seconds: float) -> None:
            if when == "before the eviction" or evictions(server):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            replace(evicting, sleep=rest).carry_out()
    assert record(server)["step"] is None


def test_a_person_whose_connection_ends_leaves_none_either(server: ApiServer, tmp_path: Path):
    """As who is signalled otherwise than by ^C: here by SIGTERM, since SIGHUP may be ignored where tests are started."""
    server.order(REFUSED, resource="pods/eviction", times=100)
    server.create("v1", "namespaces", {"metadata": {"name": "numakin"}})
    server.create("v1", "services", {"metadata": {"name": "numakin-extender"}}, "numakin")
    with extending(server, tmp_path) as extender:
        server.behind.backends["services", "numakin", "numakin-extender", "web"] = f"http://{extender.web_address}"
        cut(server, extender)
        a_person(server, extender, tmp_path, [])
        words = [sys.executable, "-m", "numakin.kubectl", "regroup", "default/shop", "--evict", "--yes"]
        config = str(server.kubeconfig(tmp_path / "person"))
        with subprocess.Popen(words, env=os.environ | {"KUBECONFIG": config}, stderr=subprocess.PIPE) as person:
            until(lambda: evictions(server), "an eviction to be asked for")
            person.terminate()
            _, err = person.communicate(timeout=PATIENCE_S)
    assert (person.returncode, b"Traceback" in err) == (130, False)
    assert record(server)["step"] is None


def test_a_person_waits_on_though_a_look_at_what_came_of_it_goes_unanswered(server: ApiServer, tmp_path: Path):
    said: list[str] = []
    with extending(server, tmp_path) as extender:
        cut(server, extender)
        evicting = a_person(server, extender, tmp_path, said)

        def rest(_seconds: float) -> None:
            if leaving(server, "web-3"):
                server.order(Cut(), "get", "affinitygroups")
                replaced(server, "web-3")
                up(server, "web-3", "n1")

        rows = replace(evicting, sleep=rest).carry_out()
    assert [(row["pod"], row["done"]) for row in rows] == [("web-3", True)]
    assert any("no answer" in line for line in said)


def test_a_person_evicts_the_next_pod_once_who_came_in_the_place_of_the_last_one_is_ready(
    server: ApiServer, tmp_path: Path
):
    said: list[str] = []
    with extending(server, tmp_path) as extender:
        uids = cut(server, extender, {"web-4": ("n1", "0"), "web-5": ("n2", "1")})
        until(lambda: len(extender.get("/api/v1/regroup?group=default/shop")["evictions"]["steps"]) == 2, "a plan")
        until(lambda: record_of_status(server), "its object")
        api = connect(str(server.kubeconfig(tmp_path / "admin")), "")

        def rest(_seconds: float) -> None:
            """The controller, kube-scheduler and the nodes work meanwhile: a newcomer is ready once that is waited for."""
            for name in ("web-3", "web-5"):
                if leaving(server, name):
                    replaced(server, name)
                    server.bind(name, "n1")
                    server.set_phase(name, "Running")
                    report(name)
            if said and said[-1].startswith("waiting"):
                assert len(evictions(server)) == 1
                server.set_phase(evictions(server)[0], "Running", conditions=[{"type": "Ready", "status": "True"}])

        def report(newcomer: str) -> None:
            """Of both nodes: it is on n1 now."""
            uids[newcomer] = server.get("v1", "pods", newcomer, "default")["metadata"]["uid"]
            moved = evictions(server)
            for node in NODES:
                there = [
                    reservation(uid, "0" if node == "n1" else "1", milli=500)
                    for name, uid in uids.items()
                    if ("n2" if name in {"web-3", "web-5"} - {*moved} else "n1") == node
                ]
                extender.enforcer(node, f"session-{len(moved) + 1}").report(machine(), *there)

        rows = Evicting(api, Direct(f"http://{extender.web_address}"), "default/shop", said.append, rest).carry_out()
    assert sorted((row["pod"], row["done"]) for row in rows) == [("web-3", True), ("web-5", True)]
    assert "waiting: another pod of its group is not ready" in said
