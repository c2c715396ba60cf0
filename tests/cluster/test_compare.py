"""`kubectl numakin compare deployment/NAME` on a real control plane: measured in turn, and restored whatever happens."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.workloads import Namespace, deployment

pytestmark = pytest.mark.timeout(1200)

PATIENCE_S = 500.0

RATE = """\
import json, subprocess, sys
kubectl, kubeconfig, namespace = sys.argv[1:]
command = [kubectl, "--kubeconfig", kubeconfig, "-n", namespace, "get", "pods", "-o", "json"]
pods = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["items"]
opted_in = sum("group.numakin.io" in pod["metadata"].get("annotations", {}) for pod in pods)
print(f"rps: {100 + 10 * opted_in}")
"""
"""A load that is served faster the more pods have opted in."""

INTERFERE = """\
import subprocess, sys
patch = '{"spec": {"template": {"metadata": {"annotations": {"numakin-compare": null}}}}}'
kubectl, kubeconfig, namespace = sys.argv[1:]
command = [kubectl, "--kubeconfig", kubeconfig, "-n", namespace, "patch", "deployment", "web", "-p", patch]
subprocess.run(command, check=True)
print("rps: 1")
"""


class Compared:
    """The Deployments `web` and `cart`, which have a history of one revision each, and the command."""

    def __init__(self, namespace: Namespace, folder: Path) -> None:
        self.namespace, self.cluster, self.folder = namespace, namespace.cluster, folder
        cart = deployment("cart", 1, annotations={"group.numakin.io": "shop", "example.com/kept": "yes"})
        namespace.deploy(deployment("web", 1), cart)
        namespace.until_running(2)
        self.before = self.state()

    def state(self) -> tuple[list[dict[str, Any]], list[str]]:
        """What a user sees of them: their specs and annotations, and their revisions by name."""
        shown = []
        for each in self._listed("deployments"):
            annotations = dict(each["metadata"].get("annotations") or {})
            annotations.pop("deployment.kubernetes.io/revision", None)
            shown.append({"spec": each["spec"], "annotations": annotations})
        return shown, [each["metadata"]["name"] for each in self._listed("replicasets")]

    def taken_up(self) -> bool:
        """Whether the controller has acted on the Deployments as they are, and made the ReplicaSets that they need."""
        listed = self._listed("deployments")
        return all(each["status"].get("observedGeneration") == each["metadata"]["generation"] for each in listed)

    def _listed(self, kind: str) -> list[dict[str, Any]]:
        path = f"/apis/apps/v1/namespaces/{self.namespace.name}/{kind}"
        items: list[dict[str, Any]] = self.cluster.plane.api.get(path).json()["items"]
        return sorted(items, key=lambda item: str(item["metadata"]["name"]))

    def load(self, program: str) -> str:
        file = self.folder / "load.py"
        file.write_text(program)
        kubeconfig = str(self.cluster.plane.kubeconfig)
        return shlex.join(
            [sys.executable, str(file), str(self.cluster.binaries.kubectl), kubeconfig, self.namespace.name]
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "numakin.kubectl", "compare", "deployment/web", "deploy/cart", *words]
        command += ["-n", self.namespace.name, "--kubeconfig", str(self.cluster.plane.kubeconfig)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        with self.start(*words) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
            return process.returncode, out, err

    def waiting(self) -> tuple[subprocess.Popen[str], int]:
        """A comparison whose first load has started, and does not end; and that load's process."""
        started = self.folder / "started"
        program = f"import os, time; os.symlink(str(os.getpid()), {str(started)!r}); time.sleep(3600)"
        process = self.start("--load", self.load(program), "--throughput", "(x)", "--settle", "0")
        self.cluster.until(lambda: started.is_symlink() or process.poll() is not None, "the load starts", PATIENCE_S)
        return process, int(str(started.readlink()))


@pytest.fixture
def compared(namespace: Namespace, tmp_path: Path) -> Compared:
    return Compared(namespace, tmp_path)


def test_both_ways_are_measured_in_turn_and_nothing_is_left(compared: Compared):
    code, out, err = compared.run(
        "--load", compared.load(RATE), "--throughput", "rps: ([0-9]+)", "--rounds", "6", "--settle", "0", "--json"
    )
    assert code == 0, err
    answer = json.loads(out)
    assert answer["compared"][0]["ratio"]["value"] == pytest.approx(1.2)
    assert answer["control"]["ratio"]["value"] == 1
    assert "with numakin is better" in answer["conclusions"][0]
    assert answer["group"] == "shop", "web joins the group that cart has"
    assert all(len(runs) == 3 for runs in answer["rounds"])
    assert compared.state() == compared.before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_stops_it_finds_all_as_it_was(compared: Compared, number: signal.Signals):
    process, _ = compared.waiting()
    assert compared.state() != compared.before
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err.splitlines()[-1]) == (130, "restoring: please wait")
    assert compared.state() == compared.before


def test_one_that_was_killed_is_restored_by_the_next(compared: Compared):
    process, load = compared.waiting()
    process.kill()
    os.kill(load, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    code, _, err = compared.run("--load", "true", "--throughput", "(x)")
    assert (code, "run compare deployment/web --restore first" in err) == (1, True), err
    code, _, err = compared.run("--restore")
    assert code == 0, err
    assert compared.state() == compared.before


FAILURES: dict[str, tuple[str, str]] = {
    "a load that fails": ("raise SystemExit('no route to shop')", "the load failed (1): no route to shop"),
    "no figure": ("print('rps: many')", "the load's output holds nothing like"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_what_fails_is_said_once_all_is_as_it_was(compared: Compared, failure: str):
    program, why = FAILURES[failure]
    code, _, err = compared.run("--load", compared.load(program), "--throughput", "rps: ([0-9]+)", "--settle", "0")
    assert code == 1
    assert why in err.splitlines()[-1]
    assert compared.state() == compared.before


def test_a_change_by_somebody_else_stops_it_and_is_left_where_it_is_not_ours(compared: Compared):
    code, _, err = compared.run("--load", compared.load(INTERFERE), "--throughput", "rps: ([0-9]+)", "--settle", "0")
    assert (code, "somebody else has changed deployment/web" in err.splitlines()[-1]) == (1, True), err
    specs, revisions = compared.state()
    assert specs == compared.before[0]
    assert set(compared.before[1]) <= set(revisions), "the history that was there is kept"


def _scaled_to_none(compared: Compared) -> None:
    compared.cluster.kubectl("-n", compared.namespace.name, "scale", "deployment/cart", "--replicas=0")


def _paused(compared: Compared) -> None:
    compared.cluster.kubectl("-n", compared.namespace.name, "rollout", "pause", "deployment/cart")


def _without_room(compared: Compared) -> None:
    words = ("set", "resources", "deployment/cart", "--requests=cpu=100000")
    compared.cluster.kubectl("-n", compared.namespace.name, *words)


@pytest.mark.parametrize(("change", "why"), [
    (_without_room, "deployment/cart is not rolled out"),
    (_scaled_to_none, "deployment/cart has no replicas"),
    (_paused, "deployment/cart is paused"),
])  # fmt: skip
def test_what_can_not_be_compared_is_refused_before_anything_is_changed(
    compared: Compared, change: Callable[[Compared], None], why: str
):
    change(compared)
    compared.cluster.until(compared.taken_up, "the controller takes up what was changed", PATIENCE_S)
    before = compared.state()
    code, _, err = compared.run("--load", "true", "--throughput", "(x)")
    assert (code, why in err) == (1, True), err
    assert compared.state() == before
