"""`compare`: what is gained by sharing a NUMA node, by two ends on a node of yours, or by your own Deployments.

On a node a pod runs `numakin-enforcer compare` and is deleted afterwards; numakin need not be installed. Deployments
are compared by `numakin.kubectl.comparing`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial
from secrets import token_hex
from typing import Any, TypeVar

from numakin.compare.options import SYSFS, whole
from numakin.compare.options import add_options as add_comparison
from numakin.compare.presentation import number
from numakin.compare.workloads import PARSERS
from numakin.kubectl.apiserver import ApiServer
from numakin.kubectl.comparing import command
from numakin.kubectl.comparing.deployment import PATIENT_WITH
from numakin.kubectl.errors import BAD_NEWS, CommandError, Unanswered, UsageError
from numakin.kubectl.output import FORMATS, percent, show, table
from numakin.kubectl.session import Session
from numakin.kubectl.undoing import undone

NAME = "compare"
EXAMPLES = """\
examples:
  kubectl numakin compare --node worker-1 --image registry.example/numakin-compare:0.1.0
  kubectl numakin compare --node worker-1 --image IMAGE --workload redis --rounds 20

  kubectl numakin compare deployment/web deployment/cart --reads wrk --load 'wrk --latency -d10s http://shop.example/'
  kubectl numakin compare deployment/web --throughput 'rps: ([0-9.]+)' \\
      --load 'kubectl exec deploy/client -- my-load http://web'

On a node: the image is built from manifests/images/compare, or is any that has numakin-enforcer and the programs of
your own workload. Take a node that is otherwise idle. It takes the right to create, get and delete pods and to get
pods/log.

Deployments: their pods run with numakin, without, and without again as the control, in turn. Each run replaces all pods
(a rollout), waits until they are ready, and runs the load here. At the end, on ^C too, everything is as it was; after a
kill -9, compare deployment/NAME --restore does it. Not for Deployments that somebody relies on, nor for those that
GitOps or an autoscaler changes meanwhile. It takes the right to get and patch deployments, to list pods, and to list
and delete replicasets.

exit codes: 0 some difference is significant, 1 none is, or a run failed, or there is nothing to compare
"""

POLL_S = 2.0
SLACK_S = 300.0
"""Beyond the runs' own time: for the image, starts and ends."""

GRACE_S = 60.0
"""After it the pod ends by itself, should this program not be there to delete it."""

LOOKED_FOR = 3
"""Times that a pod is deleted which may be created late, POLL_S apart."""

RUNS = 4
"""Of each round."""

UNPRIVILEGED_USER = 65532
GONE = 404

STUCK = (
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
)
"""What a container waits for that does not come by itself."""

Status = Mapping[str, Any]
"""A pod's."""

T = TypeVar("T")

_OF_DEPLOYMENTS = ("load", "reads", "group", "restore")
_PASSED_ON = ("workload", "rounds", "seconds", "seed", "server", "client", "throughput", "latency")


class Made(Enum):
    """Whether a pod was created, by what was answered; an answer may never come: ^C, or the network's end."""

    REFUSED = "not"
    UNKNOWN = "maybe"
    YES = "yes"


class OnePod:
    """A pod whose name is known before it is created, so that it can be deleted whatever became of the request."""

    def __init__(self, api: ApiServer, namespace: str, name: str) -> None:
        self.name, self._api = name, api
        self._full_name, self._folder = f"{namespace}/{name}", f"/api/v1/namespaces/{namespace}/pods"
        self.path, self._made = f"{self._folder}/{name}", Made.REFUSED

    def create(self, pod: dict[str, Any]) -> None:
        self._made = Made.UNKNOWN
        answer = self._api.request("POST", self._folder, body=json.dumps(pod).encode())
        if answer.status >= 400:
            self._made = Made.REFUSED if answer.status < 500 else Made.UNKNOWN
            raise (UsageError if answer.status in (400, 422) else Unanswered)(f"the pod can't be created: {answer.why}")
        self._made = Made.YES

    def delete(self) -> None:
        """A pod that is left is told, and hides nothing of how the comparison ended. One that is not there may still
        come where its request was not answered.
        """
        for at in range({Made.REFUSED: 0, Made.UNKNOWN: LOOKED_FOR, Made.YES: 1}[self._made]):
            time.sleep(POLL_S if at else 0.0)
            try:
                answer = self._api.request("DELETE", self.path)
            except CommandError as bad:
                self._tell(str(bad))
                return
            if answer.status != GONE:
                if answer.status >= 400:
                    self._tell(answer.why)
                return

    def _tell(self, why: str) -> None:
        left = "is left" if self._made is Made.YES else "may be left"
        with suppress(OSError):
            print(f"kubectl numakin: pod {self._full_name} can't be deleted, and {left}: {why}", file=sys.stderr)


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("deployments", nargs="*", metavar="deployment/NAME", help="your own; else --node")
    own.add_argument("--node", default="", metavar="NAME", help="the node to measure on")
    own.add_argument("--image", default="", help="with numakin-enforcer and the workload's programs")
    yours = own.add_argument_group("your own Deployments")
    yours.add_argument("--load", default="", metavar="COMMAND", help="what loads them; it runs here")
    yours.add_argument("--reads", default="", choices=sorted(PARSERS), help="the load's output is this program's")
    yours.add_argument("--group", default="", metavar="NAME", help="for those without one (default: the first's name)")
    waits = {
        "--settle": (whole(0, 3_600), 10, "from ready pods to the load"),
        "--timeout": (whole(1, 86_400), 600, "for one rollout, and for one load"),
    }
    for option, (kind, default, what) in waits.items():
        yours.add_argument(option, type=kind, default=default, metavar="SECONDS", help=f"{what} (default: {default})")
    yours.add_argument("--restore", action="store_true", help="what a killed comparison has left as it was")
    own.add_argument("-o", "--output", choices=FORMATS, default="table", help="(default: table)")
    add_comparison(own)


def run(given: argparse.Namespace, session: Session) -> int:
    if given.deployments:
        return command.run(given, session)
    if not given.node or not given.image:
        raise UsageError("what is to be compared? --node NAME --image IMAGE, or deployment/NAME --load 'COMMAND'")
    foreign = next((name for name in _OF_DEPLOYMENTS if getattr(given, name)), None)
    if foreign:
        raise UsageError(f"--{foreign} belongs to Deployments, not to a comparison on one node")
    if given.sysfs != SYSFS:
        raise UsageError("--sysfs is not for a pod: it sees its node's own")
    return _on_node(given, session)


def _on_node(given: argparse.Namespace, session: Session) -> int:
    own = OnePod(session.api, session.namespace, f"numakin-compare-{token_hex(4)}")
    with undone(own.delete):
        own.create(_pod(given, own.name))
        status = _ended(session.api, own.path, _longest_s(given))
        log = _log_of(session.api, own.path, status)
    answer = _answer(log, status)
    show(answer, "json" if given.json else given.output, lambda: _rendered(answer, "p99" if given.server else "p99 ms"))
    return 0 if answer["conclusive"] and not answer.get("cut_short") else BAD_NEWS


def _longest_s(given: argparse.Namespace) -> float:
    """That the pod may take."""
    return float(given.rounds * RUNS * given.seconds * 2 + SLACK_S)


def _log_of(api: ApiServer, path: str, status: Status) -> str:
    """Empty where there may be none: of a pod that its node did not take, or whose program is not there."""
    try:
        return _patiently(partial(_log, api, path))
    except Unanswered:
        if not _word(status):
            raise
        return ""


def _log(api: ApiServer, path: str) -> str:
    answer = api.get(f"{path}/log")
    if answer.status >= 400:
        raise Unanswered(f"the pod's log can't be read: {answer.why}")
    return answer.body.decode(errors="replace")


def _patiently(ask: Callable[[], T]) -> T:
    """What it returns, though it may go unanswered before: a comparison takes minutes."""
    for _ in range(PATIENT_WITH - 1):
        try:
            return ask()
        except Unanswered:
            time.sleep(POLL_S)
    return ask()


def _pod(given: argparse.Namespace, name: str) -> dict[str, Any]:
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
        "activeDeadlineSeconds": int(_longest_s(given) + GRACE_S),
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UNPRIVILEGED_USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    metadata = {"name": name, "labels": {"app.kubernetes.io/name": "numakin-compare"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _ended(api: ApiServer, path: str, within_s: float) -> Status:
    """As which it ended. CommandError when it does not."""
    deadline = time.monotonic() + within_s
    while True:
        status = _patiently(partial(api.object, path)).get("status") or {}
        phase = str(status.get("phase") or "Pending")
        if phase in ("Succeeded", "Failed"):
            return dict(status)
        stuck = next((state for state in _states(status, "waiting") if state.get("reason") in STUCK), None)
        if stuck is not None:
            raise CommandError(f"the pod can't start: {stuck['reason']}: {stuck.get('message', '')}")
        if time.monotonic() > deadline:
            raise CommandError(f"the pod has not ended after {within_s:.0f} s; it was {phase}")
        time.sleep(POLL_S)


def _states(status: Status, kind: str) -> Iterator[dict[str, Any]]:
    """Of its containers that are in a state of this kind."""
    for container in status.get("containerStatuses") or ():
        if state := (container.get("state") or {}).get(kind):
            yield state


def _word(status: Status) -> str:
    """What its kubelet says of how it ended; empty where it says nothing."""
    said = [status, *_states(status, "terminated")]
    return next((f"{each.get('reason') or 'Failed'}: {each['message']}" for each in said if each.get("message")), "")


def _answer(log: str, status: Status) -> dict[str, Any]:
    """The JSON in a log, past what was logged before. Where there is none, CommandError with what the kubelet says, or
    the last line.
    """
    start = log.find("{\n")
    try:
        answer, _ = json.JSONDecoder().raw_decode(log, start) if start >= 0 else ({}, 0)
    except ValueError:
        answer = {}
    if "conclusive" not in answer:
        lines = log.strip().splitlines()
        silent = f"the pod ended without a word ({status.get('phase')})"
        raise CommandError(_word(status) or (lines[-1] if lines else silent))
    return dict(answer)


def _rendered(answer: dict[str, Any], latency: str) -> Iterator[Any]:
    numbers = ("throughput/s", latency, "local", "remote pages")
    rows = table("way", *numbers, right=numbers)
    for way in answer["ways"]:
        shares = percent(way["local"]), percent(way["remote_pages"])
        rows.add_row(way["arm"], number(way["throughput"]), number(way["latency"]), *shares)
    yield rows
    yield from answer["conclusions"]
