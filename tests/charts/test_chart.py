"""The Helm chart installs what the manifests do, and its values set what they say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from numakin.process.version import VERSION
from tests.charts.rendering import CHART, by_hand, by_helm, run_helm, template, values
from tests.manifests.rendered import MANIFESTS, one, rendered

WAYS = pytest.mark.parametrize("render", [by_hand, by_helm], ids=["by hand", "by helm"])
EXTENDER, ENFORCER = ("Deployment", "numakin-extender"), ("DaemonSet", "numakin-enforcer")
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def named(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The namespace is Helm's to make, and its hooks are no part of what is installed."""
    return {
        (each["kind"], each["metadata"]["name"]): each
        for each in objects
        if each["kind"] != "Namespace" and not hook(each)
    }


def hook(each: dict[str, Any]) -> str:
    """When Helm makes the object; empty for a part of the release."""
    annotations: dict[str, str] = each["metadata"].get("annotations", {})
    return annotations.get("helm.sh/hook", "")


OVERLAYS = {
    "base": {},
    "overlays/strict": {"extender": {"refuse": True}},
    "overlays/regroup": {"extender": {"regroup": "evict"}},
    "overlays/bypass": {"enforcer": {"mode": "bypass"}},
    "overlays/bypass-crio": {"enforcer": {"mode": "bypass", "criSocket": "/run/crio/crio.sock"}},
    "overlays/confined": {
        name: {"seccompProfile": {"type": "Localhost", "localhostProfile": f"numakin/numakin-{name}.json"}}
        for name in ("enforcer", "extender")
    },
    "overlays/confined-apparmor": {
        name: {
            "seccompProfile": {"type": "Localhost", "localhostProfile": f"numakin/numakin-{name}.json"},
            "appArmorProfile": {"type": "Localhost", "localhostProfile": f"numakin-{name}"},
        }
        for name in ("enforcer", "extender")
    },
    "overlays/trial": {"enforcer": {"nodeSelector": {"numakin.io/trial": "true"}}},
}


@WAYS
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_chart_is_equal_to_the_manifests(render, overlay):
    ours, theirs = named(render(OVERLAYS[overlay])), named(rendered(overlay))
    assert ours.keys() == theirs.keys()
    for key, each in theirs.items():
        assert ours[key] == each, key


@WAYS
def test_strict_and_bypass_and_monitoring_go_together(render, tmp_path):
    ours = named(
        render({"extender": {"refuse": True}, "enforcer": {"mode": "bypass"}, "monitoring": {"enabled": True}})
    )
    assert "--refuse" in container(ours, "Deployment", "numakin-extender")["args"]
    assert "--mode=bypass" in container(ours, "DaemonSet", "numakin-enforcer")["args"]
    rules = yaml.safe_load((MANIFESTS / "components/monitoring/rules.yaml").read_text())
    assert ours["PrometheusRule", "numakin"]["spec"] == rules["spec"]
    boards = ours["ConfigMap", "numakin-dashboards"]["data"]
    assert {json.loads(text)["uid"] for text in boards.values()} == {"numakin-overview", "numakin-nodes"}


@WAYS
def test_a_prometheus_that_takes_labelled_objects_alone_finds_its_own(render):
    ours = named(render({"monitoring": {"enabled": True, "labels": {"release": "prometheus"}}}))
    for kind in ("PodMonitor", "PrometheusRule"):
        assert ours[kind, "numakin"]["metadata"]["labels"] == {"release": "prometheus"}


def test_what_kube_scheduler_is_to_be_told_where_it_is_installed_elsewhere():
    """All that names the Service in its configuration."""
    config = (MANIFESTS.parent / "scheduler-config/kube-scheduler-config.yaml").read_text()
    named = set(re.findall(r"^[ -]*(\w+): \S*numakin-extender\.numakin\.svc", config, re.MULTILINE))
    notes = (CHART / "templates/NOTES.txt").read_text()
    assert {name for name in named if name not in notes} == set()
    assert named


def container(objects: dict[tuple[str, str], dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    result: dict[str, Any] = objects[kind, name]["spec"]["template"]["spec"]["containers"][0]
    return result


@WAYS
def test_each_value_sets_what_it_says(render):
    changes = {
        "image": {"registry": "r.example/a/", "tag": "1.2.3", "pullPolicy": "Always", "pullSecrets": [{"name": "s"}]},
        "extender": {"replicas": 3, "extraArgs": ["--hold=60"], "resources": {"limits": {"memory": "4Gi"}}, "priorityClassName": "p",
                     "nodeSelector": {"kubernetes.io/os": None, "a": "b"}, "tolerations": [{"key": "x", "operator": "Exists"}]},
        "enforcer": {"extraArgs": ["--reserved-cpus=0-3", "--memory-tiers=2"], "priorityClassName": "q", "tolerations": [],
                     "maxUnavailable": "5%"},
        "networkPolicy": {"enabled": False},
        "crd": {"install": False},
    }  # fmt: skip
    ours = named(render(changes))
    extender, enforcer = (
        ours[key]["spec"]["template"]["spec"]
        for key in (("Deployment", "numakin-extender"), ("DaemonSet", "numakin-enforcer"))
    )
    assert extender["containers"][0]["image"] == "r.example/a/numakin-extender:1.2.3"
    assert extender["containers"][0]["imagePullPolicy"] == "Always"
    assert extender["imagePullSecrets"] == [{"name": "s"}]
    assert extender["containers"][0]["args"][-1] == "--hold=60"
    assert extender["containers"][0]["resources"]["limits"] == {"memory": "4Gi"}
    assert (extender["priorityClassName"], extender["nodeSelector"]) == ("p", {"a": "b"})
    assert extender["tolerations"] == [{"key": "x", "operator": "Exists"}]
    assert ours["Deployment", "numakin-extender"]["spec"]["replicas"] == 3
    assert enforcer["containers"][0]["args"][-2:] == ["--reserved-cpus=0-3", "--memory-tiers=2"]
    assert "tolerations" not in enforcer
    updates = ours["DaemonSet", "numakin-enforcer"]["spec"]["updateStrategy"]["rollingUpdate"]
    assert updates == {"maxSurge": 0, "maxUnavailable": "5%"}
    assert {kind for kind, _ in ours} & {"NetworkPolicy", "CustomResourceDefinition", "PodMonitor"} == set()


def test_the_templates_are_what_the_manifests_say():
    rendered("base")  # skips where no kustomize is to be had
    done = subprocess.run(
        [sys.executable, MANIFESTS.parent / "tools/setup/chart", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_chart_is_of_the_projects_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = re.search(r'^version = "(.+)"', (MANIFESTS.parent / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert chart["version"] == chart["appVersion"] == version[1]


def test_the_defaults_fit_the_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(values(), SCHEMA)


WRONG = {
    "an unknown setting": {"enforcer": {"mod": "nri"}},
    "a mode that is none": {"enforcer": {"mode": "eBPF"}},
    "six replicas": {"extender": {"replicas": 6}},
    "replicas as text": {"extender": {"replicas": "2"}},
    "a registry without its slash": {"image": {"registry": "r.example"}},
    "an argument that is no option": {"extender": {"extraArgs": ["hold=60"]}},
    "a profile that is none": {"enforcer": {"seccompProfile": {"type": "localhost"}}},
    "none at a time": {"enforcer": {"maxUnavailable": "0%"}},
    "a section that is none": {"agent": {}},
    "a section without settings": {"extender": None},
    "no number of replicas": {"extender": {"replicas": None}},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_value_is_refused_by_the_schema(case):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values(WRONG[case]), SCHEMA)


def described(lines: list[str]) -> dict[str, bool]:
    """Each setting of values.yaml, and whether a comment stands above it or above its section's first."""
    result, commented, path = {}, False, [""]
    for line in lines:
        text = line.strip()
        if text.startswith("#"):
            commented = True
            continue
        match = re.match(r"^( *)([\w]+):", line)
        if match:
            depth = len(match[1]) // 2
            path = [*path[: depth + 1], match[2]][: depth + 2]
            if depth == 1:
                result[".".join(path[1:])] = commented
        commented = False
    return result


PLAIN = {"resources", "priorityClassName", "nodeSelector", "tolerations"}
"""Say what they are by Kubernetes' own words."""


def test_every_setting_is_documented():
    received = described((CHART / "values.yaml").read_text().splitlines())
    assert len(received) > 15
    assert [
        name for name, commented in received.items() if not commented and name.rpartition(".")[2] not in PLAIN
    ] == []


def test_helm_finds_nothing_to_complain_of():
    done = run_helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


SAID = {
    "too many replicas": (("--set", "extender.replicas=6"), "maximum: got 6, want 5"),
    "a number for a tag": (("--set", "image.tag=1234"), "'/image/tag': got number, want string"),
    "true for a label": (("--set", r"enforcer.nodeSelector.a\.b/c=true"), "got boolean, want string"),
    "a section without settings": (("--set", "extender=null"), "missing property 'extender'"),
    "no number of replicas": (("--set", "extender.replicas=null"), "missing property 'replicas'"),
    "an unknown section": (("--set", "agent.x=1"), "additional properties 'agent' not allowed"),
    "a Kubernetes that is too old": (("--kube-version", "1.29.9"), "requires kubeVersion: >=1.30.0-0"),
}


@pytest.mark.parametrize("case", SAID)
def test_helm_says_what_is_wrong_with_a_value(case):
    options, text = SAID[case]
    done = template(*options)
    assert done.returncode == 1
    assert text in done.stderr


@pytest.mark.parametrize(("enabled", "kinds"), [("true", {"Deployment", "DaemonSet"}), ("false", set())])
def test_a_parent_chart_may_turn_it_on_and_off_as_is_the_custom(tmp_path: Path, enabled: str, kinds: set[str]):
    shutil.copytree(CHART, tmp_path / "charts/numakin")
    numakin = {"name": "numakin", "version": VERSION, "condition": "numakin.enabled"}
    parent = {"apiVersion": "v2", "name": "parent", "version": "0.1.0", "dependencies": [numakin]}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(parent))
    done = run_helm("template", "p", str(tmp_path), "--kube-version=1.34.0", "--set", f"numakin.enabled={enabled}")
    assert done.returncode == 0, done.stderr
    made = {each["kind"] for each in yaml.safe_load_all(done.stdout) if each}
    assert made & {"Deployment", "DaemonSet"} == kinds


def test_texts_that_look_like_numbers_stay_texts():
    done = template("--set-string", "image.tag=1234,extender.priorityClassName=123,enforcer.priorityClassName=1e3")
    ours = named([entry for entry in yaml.safe_load_all(done.stdout) if entry])
    specs = [ours[key]["spec"]["template"]["spec"] for key in (EXTENDER, ENFORCER)]
    assert [spec["priorityClassName"] for spec in specs] == ["123", "1e3"]
    assert [spec["containers"][0]["image"].rpartition(":")[2] for spec in specs] == ["1234", "1234"]


def test_the_namespace_that_helm_makes_wants_its_label_told():
    """The manifests' Namespace lets the enforcer's pods in where Pod Security is on; Helm's own does not."""
    labels = one(rendered("base"), "Namespace", "numakin")["metadata"]["labels"]
    text = (Path(MANIFESTS.parent) / "docs/operations.md").read_text()
    assert all(f"{key}={value}" in text for key, value in labels.items() if "pod-security" in key)


@WAYS
def test_the_pod_of_helm_test_reads_the_extender_and_has_no_right_more(render):
    (pod,) = [each for each in render({"image": {"registry": "r.example/", "pullPolicy": "Always"}}) if hook(each)]
    (container,) = pod["spec"]["containers"]
    assert hook(pod) == "test"
    assert (container["image"], container["imagePullPolicy"]) == ("r.example/numakin-extender:0.1.0", "Always")
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["automountServiceAccountToken"]) == ("numakin-viewer", False)
    tokens = [volume["projected"]["sources"] for volume in pod["spec"]["volumes"] if "projected" in volume]
    assert [source["serviceAccountToken"]["audience"] for (source,) in tokens] == ["numakin"]
    assert "app.kubernetes.io/part-of" not in pod["metadata"]["labels"], "nobody scrapes it"


@WAYS
def test_the_pod_of_helm_test_may_reach_every_replica(render):
    ours = named(objects := render())
    (pod,) = filter(hook, objects)
    asked = {
        argument.partition("=")[0]: argument.partition("=")[2] for argument in pod["spec"]["containers"][0]["args"]
    }
    for option in ("--service", "--replicas"):
        name, _, port = asked[option].partition(".numakin.svc:")
        assert ours["Service", name]["spec"]["selector"] == {"app.kubernetes.io/name": "numakin-extender"}
        ports = container(ours, *EXTENDER)["ports"]
        assert {"containerPort": int(port), "name": "web"} in ports
    policy = ours["NetworkPolicy", "numakin-extender"]["spec"]
    assert {"port": "web"} in next(rule["ports"] for rule in policy["ingress"] if "from" not in rule)
