"""`compare`: what two ends gain by sharing a NUMA node on a node of yours, measured in a pod.

The pod runs `numakin-enforcer compare` on the node and is deleted afterwards; numakin need not be installed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

from comparison.options import add_options as add_comparison
from kubectl_numakin.apiserver import ApiServer
from kubectl_numakin.errors import BAD_NEWS, CommandError, Unanswered, UsageError
from kubectl_numakin.output import FORMATS, percent, show, table
from kubectl_numakin.session import Session

NAME = "compare"
EXAMPLES = """\
examples:
  kubectl numakin compare --node worker-1 --image registry.example/numakin-compare:0.1.0
  kubectl numakin compare --node worker-1 --image IMAGE --workload redis --rounds 20

The image is built from manifests/images/compare, or is any that has numakin-enforcer and the programs of your own
workload. Take a node that is otherwise idle. It takes the right to create, get and delete pods and to get pods/log.

exit codes: 0 some difference is significant, 1 none is, or the node has nothing to compare
"""

POLL_S = 2.0
SLACK_S = 300.0
"""Beyond the runs' own time: for the image, starts and ends."""

RUNS = 4
"""Of each round."""

NOBODY = 65532
_PASSED_ON = ("workload", "rounds", "seconds", "seed", "server", "client", "throughput", "latency")


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("--node", required=True, metavar="NAME", help="the node to measure on")
    own.add_argument("--image", required=True, help="with numakin-enforcer and the workload's programs")
    own.add_argument("-o", "--output", choices=FORMATS, default="table", help="(default: table)")
    add_comparison(own)


def run(given: argparse.Namespace, session: Session) -> int:
    api, namespace = session.api, session.namespace
    made = api.request("POST", f"/api/v1/namespaces/{namespace}/pods", body=json.dumps(_pod(given)).encode())
    if made.status >= 400:
        raise (UsageError if made.status in (400, 422) else Unanswered)(f"the pod can't be created: {made.why}")
    path = f"/api/v1/namespaces/{namespace}/pods/{made.json()['metadata']['name']}"
    try:
        phase = _ended(api, path, given.rounds * RUNS * given.seconds * 2 + SLACK_S)
        log = api.get(f"{path}/log").body.decode(errors="replace")
    finally:
        api.request("DELETE", path)
    answer = _answer(log, phase)
    show(answer, "json" if given.json else given.output, lambda: _rendered(answer))
    return 0 if answer["conclusive"] else BAD_NEWS


def _pod(given: argparse.Namespace) -> dict[str, Any]:
    """Not opted in: what is measured sets its CPUs itself."""
    values = {name: getattr(given, name) for name in _PASSED_ON}
    options = [f"--{name}={value}" for name, value in values.items() if value != ""]
    container = {
        "name": "compare",
        "image": given.image,
        "command": ["numakin-enforcer"],
        "args": ["compare", "--json", *options],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    spec = {
        "nodeName": given.node,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {"runAsNonRoot": True, "runAsUser": NOBODY, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    metadata = {"generateName": "numakin-compare-", "labels": {"app.kubernetes.io/name": "numakin-compare"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _ended(api: ApiServer, path: str, within_s: float) -> str:
    """The phase in which it ended. CommandError when it does not."""
    deadline = time.monotonic() + within_s
    while True:
        status = api.object(path).get("status") or {}
        phase = str(status.get("phase") or "Pending")
        if phase in ("Succeeded", "Failed"):
            return phase
        waiting = [container.get("state", {}).get("waiting", {}) for container in status.get("containerStatuses") or ()]
        stuck = next(
            (state for state in waiting if state.get("reason") in ("ImagePullBackOff", "InvalidImageName")), None
        )
        if stuck is not None:
            raise CommandError(f"the pod can't start: {stuck['reason']}: {stuck.get('message', '')}")
        if time.monotonic() > deadline:
            raise CommandError(f"the pod has not ended after {within_s:.0f} s; it was {phase}")
        time.sleep(POLL_S)


def _answer(log: str, phase: str) -> dict[str, Any]:
    """The JSON in a log, past what was logged before. CommandError with the last line where there is none."""
    start = log.find("{\n")
    try:
        answer, _ = json.JSONDecoder().raw_decode(log, start) if start >= 0 else ({}, 0)
    except ValueError:
        answer = {}
    if "conclusive" not in answer:
        lines = log.strip().splitlines()
        raise CommandError(lines[-1] if lines else f"the pod ended without a word ({phase})")
    return dict(answer)


def _rendered(answer: dict[str, Any]) -> Iterator[Any]:
    rows = table(
        "way", "throughput/s", "p99 ms", "local", "remote pages",
        right=("throughput/s", "p99 ms", "local", "remote pages"),
    )  # fmt: skip
    for way in answer["ways"]:
        latency = "-" if way["latency"] is None else f"{way['latency']:.2f}"
        shares = percent(way["local"]), percent(way["remote_pages"])
        rows.add_row(way["arm"], f"{way['throughput']:,.0f}", latency, *shares)
    yield rows
    yield from answer["conclusions"]
