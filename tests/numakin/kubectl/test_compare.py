"""`compare` measures in a pod on the node that is named, and leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import PATIENCE_S
from numakin.compare.arms import ON_ONE_MACHINE
from numakin.compare.presentation import as_json
from numakin.compare.rounds import result
from tests.numakin.compare.made_up import made_up
from tests.numakin.kubectl.asking import Told, ask

Ran = tuple[str, bytes]
"""The phase in which a pod ends, and its log."""


def pods(api: ApiServer) -> list[str]:
    actual = api.store.snapshot(api.answers.kind("v1", "pods"), api.store.revision) or []
    return [name for (_, name), _ in actual]


@contextmanager
def kubelet(api: ApiServer, run: Callable[[dict[str, Any]], Ran]) -> Iterator[None]:
    """Runs the pod that comes next."""

    def follow() -> None:
        api.wait_for("done", 1, verb="create", resource="pods")
        (name,) = pods(api)
        phase, log = run(api.get("v1", "pods", name, "default"))
        api.behind.logs["default", name] = log
        api.set_phase(name, phase)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    yield
    thread.join(PATIENCE_S)


def really(pod: dict[str, Any]) -> Ran:
    """The container's own command, on this machine."""
    (container,) = pod["spec"]["containers"]
    assert container["command"] == ["numakin-enforcer"]
    command = [sys.executable, "-m", "enforcer", *container["args"]]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False)
    return ("Failed" if done.returncode else "Succeeded"), done.stdout


def told(pod: dict[str, Any], again: float = 110.0, late_again: float = 1.0) -> Ran:
    """What the command prints on a machine with two NUMA nodes, after what it says on the way."""
    text = json.dumps(
        as_json(result(made_up(again, late_again), ON_ONE_MACHINE), {"workload": "wrk -> nginx", "seconds": 5}),
        indent=2,
    )
    return "Succeeded", f"wrk -> nginx: 8 rounds of 4 runs\n{text}\n".encode()


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        server.create_node("node-1")
        yield server


def compared(api: ApiServer, folder: Path, run: Callable[[dict[str, Any]], Ran], *words: str) -> Told:
    config = api.kubeconfig(folder / "config")
    with kubelet(api, run):
        return ask("compare", "--node", "node-1", "--image", "numakin-compare:1", *words, KUBECONFIG=str(config))


def test_what_was_measured_on_the_node_is_told(api, tmp_path):
    done = compared(api, tmp_path, told)
    assert done.code == 0, done.err
    assert [line.split()[0] for line in done.lines[1:4]] == ["together", "spread", "unpinned"]
    assert any(line.startswith("throughput, together / spread: x 1.1") for line in done.lines)


def test_noise_is_bad_news(api, tmp_path):
    done = compared(api, tmp_path, lambda pod: told(pod, again=130.0, late_again=1.2))
    assert done.code == 1
    assert "nothing can be concluded" in done.out


def test_a_node_with_nothing_to_compare_says_so_itself(api, tmp_path):
    """The real command; wherever the tests run, it refuses a server that is not there."""
    words = ("--server", "no-such-server", "--client", "true", "--throughput", "(x)")
    done = compared(api, tmp_path, really, *words)
    assert done.code == 1
    assert done.err == "kubectl numakin: numakin-enforcer: no-such-server is not installed: it is needed for your own\n"


def test_the_pod_runs_on_the_node_without_powers_and_without_having_opted_in(api, tmp_path):
    seen: list[dict[str, Any]] = []
    compared(api, tmp_path, lambda pod: (seen.append(pod), told(pod))[1], "--rounds", "7")
    (pod,) = seen
    assert pod["spec"]["nodeName"] == "node-1"
    assert "annotations" not in pod["metadata"]
    assert pod["spec"]["securityContext"]["runAsNonRoot"]
    assert pod["spec"]["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "--rounds=7" in pod["spec"]["containers"][0]["args"]


@pytest.mark.parametrize("run", [told, lambda pod: ("Failed", b"")], ids=["measured", "failed"])
def test_nothing_is_left_behind(api, tmp_path, run):
    compared(api, tmp_path, run)
    assert api.done("delete", "pods") == 1


def test_a_pod_that_ends_without_a_word_is_bad_news(api, tmp_path):
    done = compared(api, tmp_path, lambda pod: ("Failed", b""))
    assert (done.code, done.err) == (1, "kubectl numakin: the pod ended without a word (Failed)\n")


def test_who_may_not_create_pods_is_told_so(api, tmp_path):
    config = api.kubeconfig(tmp_path / "config", api.grant("nobody", []))
    done = ask("compare", "--node", "node-1", "--image", "i", KUBECONFIG=str(config))
    assert done.code == 3
    assert 'User "nobody" cannot create resource "pods"' in done.err


@pytest.mark.parametrize(("words", "why"), [
    ((), "what is to be compared? --node NAME --image IMAGE, or deployment/NAME"),
    (("--node", "n"), "what is to be compared? --node NAME --image IMAGE, or deployment/NAME"),
    (("--node", "n", "--image", "i", "--load", "x"), "--load belongs to Deployments"),
    (("statefulset/db", "--load", "x"), "only Deployments can be compared, as deployment/NAME"),
    (("deployment/web",), "--load 'COMMAND'"),
    (("deployment/web", "--load", "x", "--group", "a b"), "'a b' is no name of a group"),
    (("deployment/web", "--load", "x"), "--throughput REGEX or --reads redis-benchmark|wrk"),
    (("deployment/web", "--load", "x", "--throughput", "rps"), "must have one group"),
    (("deployment/web", "--load", "x", "--throughput", "(x)", "--reads", "wrk"), "give one"),
    (("deployment/web", "--load", "x", "--reads", "wrk", "--latency", "(x)"), "--reads finds both"),
    (("deployment/web", "--load", "'x", "--throughput", "(x)"), "No closing quotation"),
    (("deployment/web", "--load", "x", "--throughput", "(x)", "--image", "i"), "--image belongs to a comparison on one node"),
    (("--node", "n", "--image", "i", "--sysfs", "/elsewhere"), "--sysfs is not for a pod"),
    (("deployment/web", "--load", "x", "--reads", "wrk", "--rounds", "3"), "3 rounds are too few to conclude anything: 6 at least"),
    (("--node", "n", "--image", "i", "--rounds", "x"), "'x' is not allowed"),
    (("--node", "n", "--image", "i", "--extender", "http://h:1"), "asks the API server"),
])  # fmt: skip
def test_each_wrong_use_costs_one_line(words, why):
    done = ask("compare", *words)
    assert done.code == 2
    assert why in done.err
    assert len(done.err.splitlines()) == 1
