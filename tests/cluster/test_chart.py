"""The chart by Helm itself on a real API server: installed, asked, changed, rolled back and uninstalled."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from extender.kube.api import MERGE_PATCH
from extender.kube.tls import own_ca
from lab.cluster.cluster import NAMESPACE, Cluster, Terms
from lab.standins.patience import PATIENCE_S
from tests.charts.rendering import CHART, helm
from tests.cluster.conftest import up
from tests.cluster.secured import Secured, started
from tests.extender.running import Enforcer, machine, recorded
from tests.manifests.rendered import files

pytestmark = pytest.mark.thorough

NODES = {"node-0": "epyc-7763-nps2", "node-1": "epyc-7763-nps2"}
KINDS = "clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,services,deployments,daemonsets,networkpolicies,poddisruptionbudgets"
NEWER = ("kubeVersion:", "maxSurge:", "unhealthyPodEvictionPolicy:", "lifecycle:", "preStop:", "sleep:", "seconds:")
POD = f"/api/v1/namespaces/{NAMESPACE}/pods/numakin-test"
GROUP = {"apiVersion": "numakin.io/v1alpha1", "kind": "AffinityGroup", "metadata": {"name": "shop"}, "spec": {}}


class Helm:
    """On a cluster without numakin. chart: as the cluster's API server takes it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.chart = folder / "numakin"
        shutil.copytree(CHART, self.chart)
        self.values: list[str] = []
        if cluster.plane.release.minor < 30:
            self._made_old()

    def _made_old(self) -> None:
        """Takes away what its Kubernetes does not have: the chart is for 1.30 and newer."""
        budget = self.cluster.plane.release.known({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1"})
        for path in (self.chart / "Chart.yaml", *self.chart.glob("templates/*.yaml")):
            lines = path.read_text().splitlines()
            kept = [line for line in lines if not line.strip().startswith(NEWER)]
            path.write_text(
                "\n".join(kept).replace("apiVersion: policy/v1", f"apiVersion: {budget['apiVersion']}") + "\n"
            )
        self.values = ["--set", "enforcer.appArmorProfile=null"]
        # Helm 4 applies on the server's side, which before 1.21 does not know that a port's protocol may be left out.
        if "--server-side" in self("install", "--help"):
            self.values.append("--server-side=false")

    def command(self, *arguments: str) -> list[str]:
        return [helm(), *arguments, "--kubeconfig", str(self.cluster.plane.kubeconfig), "--namespace", NAMESPACE]

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, *options: str) -> str:
        return self("install", "numakin", str(self.chart), "--wait", "--timeout=180s", *self.values, *options)

    def upgrade(self, *options: str) -> str:
        return self("upgrade", "numakin", str(self.chart), "--wait", "--timeout=180s", *self.values, *options)


@pytest.fixture(scope="module")
def on_helm(kubernetes, request, tmp_path_factory) -> Iterator[Helm]:
    helm()
    with up(kubernetes, Terms(NODES, extenders=0), request) as cluster:
        ours = [each for each in files() if each["kind"] != "Namespace"]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*map(cluster.plane.release.known, ours)]})
        cluster.kubectl("-n", NAMESPACE, "delete", "--wait", "-f", "-", text=text)
        yield Helm(cluster, tmp_path_factory.mktemp("chart"))


@pytest.fixture
def installed(on_helm: Helm) -> Iterator[Helm]:
    on_helm.install()
    yield on_helm
    on_helm("uninstall", "numakin", "--wait", "--timeout=180s")


def there(cluster: Cluster) -> set[str]:
    """Every object of numakin's, as KIND/NAME."""
    listed = cluster.kubectl("get", f"{KINDS},crd", "-A", "-o", "json")
    named = {f"{each['kind']}/{each['metadata']['name']}" for each in json.loads(listed)["items"]}
    return {each for each in named if "numakin" in each}


def spec(cluster: Cluster, name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(cluster.kubectl("-n", NAMESPACE, "get", name, "-o", "json"))["spec"]
    return result


def test_it_is_installed_changed_rolled_back_and_uninstalled(on_helm: Helm):
    cluster = on_helm.cluster
    assert there(cluster) == set()
    assert "kubectl numakin doctor" in on_helm.install()
    first, rolled_out = there(cluster), spec(cluster, "deployment/numakin-extender")
    expected = [each for each in yaml.safe_load_all(on_helm("get", "manifest", "numakin")) if each]
    assert first == {f"{each['kind']}/{each['metadata']['name']}" for each in expected}
    assert len(first) > 15
    cluster.kubectl("wait", "--for=condition=Established", "crd/affinitygroups.numakin.io", "--timeout=60s")
    cluster.kubectl("apply", "-f", "-", text=json.dumps(GROUP))

    on_helm.upgrade("--set", "extender.replicas=3,extender.refuse=true,networkPolicy.enabled=false")
    changed = spec(cluster, "deployment/numakin-extender")
    assert changed["replicas"] == 3
    assert "--refuse" in changed["template"]["spec"]["containers"][0]["args"]
    assert there(cluster) - first == {
        f"{kind}/numakin-extender-waking" for kind in ("ClusterRole", "ClusterRoleBinding")
    }
    assert first - there(cluster) == {f"NetworkPolicy/numakin-{name}" for name in ("extender", "enforcer")}

    on_helm("rollback", "numakin", "1", "--wait", "--timeout=180s")
    assert there(cluster) == first
    assert spec(cluster, "deployment/numakin-extender") == rolled_out
    assert "shop" in cluster.kubectl("get", "affinitygroups", "-o", "name"), "what was learned outlives a change"

    on_helm("uninstall", "numakin", "--wait", "--timeout=180s")
    assert there(cluster) == set()
    cluster.until(lambda: not cluster.pods(NAMESPACE), "its pods to be gone")


@pytest.fixture
def secured(installed: Helm, tmp_path: Path) -> Iterator[Secured]:
    """Its enforcers report once, and are not to count as silent however slow the test."""
    options = (f"--enforcer-account={NAMESPACE}:numakin-enforcer", "--report-timeout=3600")
    with started(installed.cluster, tmp_path, *options) as secured:
        yield secured


def token(cluster: Cluster, account: str, pod: dict[str, Any]) -> str:
    """As its kubelet mounts it: for numakin alone, bound to the pod."""
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    asked = {"spec": {"audiences": ["numakin"], "boundObjectRef": bound}}
    result: str = cluster.plane.api.request("POST", path, None, asked).json()["status"]["token"]
    return result


def enforcer(secured: Secured, pod: dict[str, Any]) -> Enforcer:
    """Reports as the one in this pod would, over TLS."""
    ca = secured.data("configmap", own_ca.BUNDLE)["ca.crt"]
    channel = grpc.secure_channel(secured.grpc, grpc.ssl_channel_credentials(ca))
    given = token(secured.cluster, "numakin-enforcer", pod)
    made = Enforcer(secured.grpc, pod["spec"]["nodeName"], token=given, channel=channel)
    made.report(machine())
    return made


class Hook:
    """What a kubelet does with the pod of `helm test`: runs its very command, with its account's rights, and writes how
    it ended. The names of Services are the extender's address here, which its certificate has too.
    """

    def __init__(self, secured: Secured, ours: Helm, folder: Path) -> None:
        self._secured, self._helm, self._folder = secured, ours, folder
        self.said = ""

    def tested(self, *options: str) -> int:
        """The exit code of `helm test`. options: more of the pod's command."""
        cluster = self._helm.cluster
        command = self._helm.command("test", "numakin", "--timeout=180s")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as test:
            cluster.until(lambda: self.phase() == "Running" or test.poll() is not None, "the test's pod to run")
            code = self._run(cluster.plane.api.get(POD).json(), options)
            status = {"phase": "Failed" if code else "Succeeded"}
            cluster.plane.api.request("PATCH", f"{POD}/status", None, {"status": status}, MERGE_PATCH)
            test.communicate(timeout=PATIENCE_S)
        return test.returncode

    def phase(self) -> str:
        pods = self._helm.cluster.pods(NAMESPACE, "app.kubernetes.io/name=numakin-test")
        return pods[0]["status"]["phase"] if pods and not pods[0]["metadata"].get("deletionTimestamp") else ""

    def _run(self, pod: dict[str, Any], options: tuple[str, ...]) -> int:
        (container,) = pod["spec"]["containers"]
        assert pod["spec"]["automountServiceAccountToken"] is False
        (self._folder / "token").write_text(token(self._helm.cluster, pod["spec"]["serviceAccountName"], pod))
        (self._folder / "ca.crt").write_bytes(self._secured.data("configmap", own_ca.BUNDLE)["ca.crt"])
        mounted = {"/etc/numakin/ca": self._folder, "/var/run/secrets/numakin": self._folder}
        arguments = list(container["args"])
        for path, folder in mounted.items():
            arguments = [each.replace(path, str(folder)) for each in arguments]
        for service in ("numakin-extender", "numakin-extender-replicas"):
            name = f"={service}.{NAMESPACE}.svc:8083"
            arguments = [each.replace(name, f"={self._secured.web}") for each in arguments]
        assert container["command"][0] == "python"
        command = [sys.executable, *container["command"][1:], *arguments, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        self.said = done.stdout + done.stderr
        return done.returncode


def test_helm_test_says_what_does_not_work_yet_and_then_that_all_does(
    installed: Helm, secured: Secured, tmp_path: Path
):
    cluster = installed.cluster
    hook = Hook(secured, installed, tmp_path)
    labelled = "app.kubernetes.io/name=numakin-enforcer"
    first, second = sorted(cluster.pods(NAMESPACE, labelled), key=lambda pod: pod["spec"]["nodeName"])
    streams = [enforcer(secured, first)]

    assert hook.tested("--patience=1") != 0
    assert "FAILED: no enforcer has reported from node-1: see the log of its pod" in hook.said
    assert "FAILED: kube-scheduler, which placed this pod, has called no replica: give it" in hook.said

    streams.append(enforcer(secured, second))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        secured.ask("POST", "/filter", recorded("basic-nodecache-true.filter"))
    assert hook.tested() != 0
    assert hook.said.count("FAILED") == 1, hook.said
    assert "FAILED: kube-scheduler, which placed this pod, has called no replica: somebody was not let in" in hook.said

    assert secured.ask("POST", "/filter", recorded("basic-nodecache-true.filter"), scheduler=True)[0] == 200
    assert hook.tested() == 0, hook.said
    assert hook.said.splitlines() == [
        "ok: replicas of the extender that are ready, over TLS: 1",
        "ok: nodes whose enforcers report to every replica: 2",
        "ok: calls of kube-scheduler since the replicas began: 1",
    ]
    cluster.until(lambda: hook.phase() == "", "the pod of a test that went well to be gone")
    for each in streams:
        each.close()
