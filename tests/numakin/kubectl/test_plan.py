"""`plan` answers what would happen, and nothing happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.standins.patience import until
from numakin.kubectl.lean import lean, with_terms
from numakin.kubectl.manifest import pods
from numakin.placement.model.cpuset import NumaSet
from tests.extender.running import machine, reservation, running
from tests.numakin.kubectl.asking import ask
from tests.numakin.kubectl.conftest import scored
from tests.numakin.kubectl.documents import deployment


def planned(written: Any, at: str, *objects: object, code: int = 0) -> list[dict[str, Any]]:
    answer = ask("plan", "-f", written(*objects), "-n", "shop", at, "-o", "json")
    assert answer.code == code, answer.err
    rows: list[dict[str, Any]] = answer.json["pods"]
    return rows


def test_each_replica_joins_its_group_while_there_is_room(written, at):
    rows = planned(written, at, deployment(3))
    assert [(row["node"], row["numa_nodes"]) for row in rows] == [("node-1", "0")] * 3
    assert [row["workload"] for row in rows] == ["shop/Deployment/web"] * 3


def test_a_replica_finds_those_before_it(written, at):
    """Five of 3 CPUs: NUMA nodes have 8 each, of which the members of node-1 have 3 and 1.5."""
    rows = planned(written, at, deployment(5, cpu="3"))
    used: dict[tuple[str, int], float] = {("node-1", 0): 3.0, ("node-1", 1): 1.5}
    for row in rows:
        (numa_node,) = NumaSet.parse(row["numa_nodes"])
        used[row["node"], numa_node] = used.get((row["node"], numa_node), 0) + 3
    assert max(used.values()) <= 8
    assert len({(row["node"], row["numa_nodes"]) for row in rows}) > 1


def test_a_pod_s_own_resources_count_once_whatever_its_containers_ask_for(written, at):
    """Two replicas of 4 CPUs of their own, of which a NUMA node holds one beside its members."""
    manifest = deployment(2)
    template = manifest["spec"]["template"]
    template["spec"]["containers"] = [{"name": name, "image": "x"} for name in ("app", "log")]
    template["spec"]["resources"] = {"limits": {"cpu": "4", "memory": "1Gi"}}
    template["metadata"]["annotations"]["cpus.numakin.io"] = "exclusive"
    rows = planned(written, at, manifest)
    assert len({(row["node"], row["numa_nodes"]) for row in rows}) == 2
    assert all("pod's budget 4 CPUs" in "; ".join(row["weighed"][0]["reasons"]) for row in rows)


IN_POOL = {
    "nodeSelector": {"pool": "fast"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
            }
        }
    },
}


def test_what_pods_say_of_nodes_is_asked_with_them(written):
    manifest = deployment(1)
    manifest["spec"]["template"]["spec"] |= IN_POOL | {"terminationGracePeriodSeconds": 1}
    (pod,) = pods(written(manifest), "shop")
    assert with_terms(pod) == {**lean(pod), "spec": {**lean(pod)["spec"], **IN_POOL}}
    assert lean(pod)["spec"].keys().isdisjoint({*IN_POOL, "terminationGracePeriodSeconds"}), "as it is recorded"


@pytest.mark.parametrize("label", ["pod-template-hash", "rollouts-pod-template-hash"])
def test_of_labels_that_is_kept_by_which_a_pod_is_its_workloads(label: str) -> None:
    pod = {"metadata": {"name": "web", "labels": {"app": "web", label: "5d4"}}, "spec": {}}
    assert lean(pod)["metadata"]["labels"] == {label: "5d4"}


def test_nothing_is_held_or_remembered(written, at, extender):
    before = extender.get("/api/v1/nodes")["nodes"], extender.get("/api/v1/groups")
    planned(written, at, deployment(8, cpu="2"))
    after = extender.get("/api/v1/nodes")["nodes"], extender.get("/api/v1/groups")
    assert [(entry["generation"], entry["assumed"]) for entry in before[0]] == [
        (entry["generation"], entry["assumed"]) for entry in after[0]
    ]
    assert before[1] == after[1]
    assert extender.ask("GET", "/api/v1/explain?namespace=shop&pod=web-numakin0plan-0")[0] == 404


def test_what_is_planned_is_what_is_then_scored(tmp_path, written):
    with running(tmp_path) as extender:
        extender.enforcer("node-1").report(machine(), reservation("a", "1", group="shop/boutique"))
        extender.enforcer("node-2").report(machine())
        until(lambda: len(extender.get("/api/v1/nodes")["nodes"]) == 2, "both nodes are known")
        (row,) = planned(written, f"--extender=http://{extender.web_address}", deployment(1))
        scores = extender.scores(scored("web-0"))
        assert max(scores, key=scores.__getitem__) == row["node"] == "node-1"
        assert (
            extender.get("/api/v1/explain?namespace=shop&pod=web-0")["expected"]["numa_nodes"]
            == row["numa_nodes"]
            == "1"
        )


def test_a_pod_that_fits_nowhere_is_bad_news(written, at):
    (row,) = planned(written, at, deployment(1, cpu="100"), code=1)
    assert row["node"] is None
    assert row["why"] == "no node's enforcer would place it"


def test_a_pod_that_has_not_opted_in_is_left_alone(written, at):
    answer = ask("plan", "-f", written(deployment(2, annotations={})), at)
    assert answer.code == 0
    assert "2 of 2 pods have no annotation group.numakin.io that counts: numakin leaves them alone" in answer.out
    assert "it belongs into the pods' template (spec.template.metadata.annotations)" in answer.out


def test_an_annotation_that_would_not_be_taken_is_named(written, at):
    bad = {"group.numakin.io": "boutique", "cpus.numakin.io": "mine"}
    answer = ask("plan", "-f", written(deployment(2, annotations=bad)), "-n", "shop", at)
    (line,) = [line for line in answer.lines if "cpus.numakin.io" in line]
    assert "'mine' is not allowed; allowed: shared, shared-stable, exclusive, exclusive-cores" in line


def large(replicas: int, **of_spec: object) -> dict[str, Any]:
    """A Deployment as large as those of a cluster: 10 KB of a template, of which placement needs little."""
    made = deployment(replicas, cpu="10m")
    template = made["spec"]["template"]
    template["metadata"]["labels"] = {"app": "web", "pod-template-hash": "theirs"}
    template["metadata"]["annotations"]["notes.example.org/long"] = "x" * 5_000
    template["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Mi"
    template["spec"]["containers"][0]["env"] = [{"name": f"VARIABLE_{at}", "value": "y" * 90} for at in range(50)]
    template["spec"] |= of_spec
    return made


def test_a_hundred_replicas_of_a_large_template_are_planned(written, at):
    rows = planned(written, at, large(100))
    assert len(rows) == 100
    assert {row["node"] for row in rows} <= {"node-1", "node-2"}


EXAMPLES = sorted((Path(__file__).parents[3] / "manifests" / "examples").glob("*.yaml"))
KATALYST = {"katalyst.kubewharf.io/qos_level": "dedicated_cores"}
SENT_WHOLE = {path.stem: path.read_text() for path in EXAMPLES} | {
    "Katalyst's": yaml.safe_dump(deployment(2, annotations={"group.numakin.io": "boutique"} | KATALYST)),
    "wrong annotations": yaml.safe_dump(deployment(2, annotations={"group.numakin.io": "-", "x.numakin.io/y": "z"})),
    "of one container": yaml.safe_dump(deployment(2, annotations={"group.numakin.io/container.main": "boutique"})),
    "much else": yaml.safe_dump(large(3, priority=7, hostNetwork=True, resources={"requests": {"cpu": "2"}})),
}  # fmt: skip


@pytest.mark.parametrize("case", SENT_WHOLE)
def test_the_answer_is_that_to_the_whole_pods(tmp_path, at, extender, case):
    path = tmp_path / "manifest.yaml"
    path.write_text(SENT_WHOLE[case])
    asked = {"questions": [{"pods": pods(str(path), "shop"), "nodes": None}]}
    status, to_whole_pods = extender.ask("POST", "/api/v1/plan", json.dumps(asked).encode())
    assert status == 200, to_whole_pods
    answer = ask("plan", "-f", str(path), "-n", "shop", at, "-o", "json").json
    assert ageless(answer["pods"]) == ageless(to_whole_pods["pods"])


def ageless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without how old the reports were, which differs with each question."""
    kept = [[{**weighed, "data_age_seconds": 0} for weighed in row["weighed"]] for row in rows]
    return [{**row, "weighed": weighed} for row, weighed in zip(rows, kept, strict=True)]


@pytest.mark.parametrize("file", ["a file", "-"])
def test_a_manifest_is_in_utf_8_whatever_the_locale_is(at, tmp_path, file):
    path = tmp_path / "manifest.yaml"
    path.write_text(f"# \N{EURO SIGN}\n{json.dumps(deployment(1))}", encoding="utf-8")
    plain = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [
        sys.executable,
        "-m",
        "numakin.kubectl",
        "plan",
        "-f",
        "-" if file == "-" else str(path),
        at,
        "-o",
        "json",
    ]
    done = subprocess.run(command, input=path.read_bytes(), capture_output=True, env=plain, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_manifest_comes_from_standard_input_too(at):
    answer = ask("plan", "-f", "-", "-n", "shop", at, "-o", "wide", stdin=json.dumps(deployment(1)))
    assert answer.code == 0
    assert [line.split()[0] for line in answer.lines[1:]] == ["shop/web-numakin0plan-0", "node-2"]


def test_every_kind_with_pods_is_taken_and_others_are_passed_by(written, at):
    template = deployment()["spec"]["template"]
    named = {"metadata": {"name": "x"}}
    objects: list[dict[str, Any]] = [
        {"kind": "Service", **named},
        {"kind": "StatefulSet", **named, "spec": {"replicas": 2, "template": template}},
        {"kind": "Job", **named, "spec": {"parallelism": 2, "template": template}},
        {"kind": "CronJob", **named, "spec": {"jobTemplate": {"spec": {"template": template}}}},
        {"kind": "Pod", "metadata": {"name": "x", **template["metadata"]}, "spec": template["spec"]},
    ]
    rows = planned(written, at, {"kind": "List", "items": objects})
    assert [row["workload"].partition("/")[2] for row in rows] == [
        *["StatefulSet/x"] * 2, *["Job/x"] * 2, "Job/x-next", "Pod/x",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["DeploymentList", "List"])
def test_what_the_api_server_lists_of_one_kind_is_taken_as_well(written, at, kind):
    """Its items name no kind, and each may be a list once more, as of several files."""
    named = deployment(2) if kind == "List" else {**deployment(2), "kind": None}
    listed = {"kind": kind, "items": [{key: value for key, value in named.items() if value is not None}]}
    services = {"kind": "ServiceList", "items": [{"metadata": {"name": "x"}}]}
    rows = planned(written, at, {"kind": "List", "items": [services, listed]})
    assert [row["workload"].partition("/")[2] for row in rows] == ["Deployment/web"] * 2


WRONG = {
    "nothing": ("", "no pods in it"),
    "no YAML": ("a: [", "not YAML: "),
    "no object": ("- 1", "no Kubernetes object"),
    "a Service alone": ("kind: Service", "no pods in it"),
    "a Deployment without a name": ("kind: Deployment", "it has no metadata"),
    "a Deployment without a template": ("{kind: Deployment, metadata: {name: a}, spec: {}}", "it has no template"),
    "a Deployment with an empty spec": ("{kind: Deployment, metadata: {name: a}, spec: }", "it has no spec"),
    "a Pod with an empty spec": ("{kind: Pod, metadata: {name: a}, spec: }", "it has no spec"),
    "a Pod whose spec is a list": ("{kind: Pod, metadata: {name: a}, spec: [1]}", "another type"),
    "a template with an empty spec": (
        "{kind: Deployment, metadata: {name: a}, spec: {template: {spec: }}}", "it has no spec",
    ),
    "labels that are a text": (
        "{kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {labels: x}, spec: {}}}}", "another type",
    ),
    "a text where an object is wanted": ("{kind: Deployment, metadata: {name: a}, spec: x}", "another type"),
    "replicas that are no number": (yaml.safe_dump(deployment("many")), "replicas must be a whole number, not 'many'"),
    "too many replicas": (yaml.safe_dump(deployment(101)), "more than 100 pods"),
    "a List of numbers": ("{kind: List, items: [1]}", "items that are no objects"),
    "a PodList of numbers": ("{kind: PodList, items: [1]}", "its PodList has items that are no objects"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_each_bad_manifest_costs_one_line(tmp_path, at, case):
    text, why = WRONG[case]
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    answer = ask("plan", "-f", str(path), at)
    assert answer.code == 2
    (line,) = answer.err.splitlines()
    assert line.startswith(f"kubectl numakin: {path}: ")
    assert why in line


def test_what_looks_like_a_time_is_a_text_as_kubectl_has_it(written, at, tmp_path):
    path = tmp_path / "manifest.yaml"
    path.write_text(
        yaml.safe_dump(deployment(1)).replace("annotations:", "annotations:\n        at: 2026-01-02T03:04:05Z")
    )
    answer = ask("plan", "-f", str(path), "-n", "shop", at, "-o", "json")
    assert answer.code == 0, answer.err
    assert answer.json["pods"][0]["node"] == "node-1"


def test_replicas_that_are_left_empty_are_one(written, at):
    assert len(planned(written, at, deployment(None))) == 1


def test_what_json_can_not_say_costs_one_line(written, at):
    (line,) = ask("plan", "-f", written(deployment(1, annotations={"group.numakin.io": b"bytes"})), at).err.splitlines()  # type: ignore[dict-item]
    assert "can't be sent as JSON" in line


def test_a_field_that_the_extender_does_not_take_is_named(written, at):
    bad = deployment(1)
    bad["spec"]["template"]["spec"]["containers"] = "none"
    answer = ask("plan", "-f", written(bad), at)
    assert answer.code == 1
    assert "questions[0].pods[0].spec.containers" in answer.err


def test_a_file_that_is_not_there_costs_one_line(at):
    answer = ask("plan", "-f", "/no/such.yaml", at)
    assert (answer.code, answer.err) == (2, "kubectl numakin: /no/such.yaml: No such file or directory\n")


@pytest.mark.parametrize(("spec", "count"), [
    ({"parallelism": 4, "completions": 2}, 2),
    ({"parallelism": 2, "completions": 4}, 2),
    ({"completions": 3}, 1),
    ({"parallelism": 3, "completions": None}, 3),
], ids=str)  # fmt: skip
def test_a_job_runs_no_more_pods_at_once_than_it_has_to_complete(written, spec, count):
    template = deployment(1)["spec"]["template"]
    job = {"kind": "Job", "metadata": {"name": "x"}, "spec": {**spec, "template": template}}
    assert len(pods(written(job), "shop")) == count
