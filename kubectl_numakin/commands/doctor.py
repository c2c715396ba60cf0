"""`doctor`: every node's doctor in one table, and whether kube-scheduler asks the extender at all.

Each enforcer's own `numakin-enforcer doctor` is run in its pod, with the options that it runs with.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

from kubectl_numakin.errors import BAD_NEWS, CommandError
from kubectl_numakin.metrics import counted
from kubectl_numakin.output import FORMATS, show, table
from kubectl_numakin.pods import ENFORCER, EXTENDER, OwnPod, Ran, each, of_nodes, own_pods, run_in
from kubectl_numakin.reach import get
from kubectl_numakin.session import Session

NAME = "doctor"
EXAMPLES = """\
examples:
  kubectl numakin doctor
  kubectl numakin doctor --node worker-1 -o wide

It takes the right to list pods and nodes, and to get and create pods/exec in numakin's namespace.

exit code 1: some finding is bad
"""

GOOD, NOTE, BAD = "good", "note", "bad"
STYLES = {GOOD: "green", NOTE: "yellow", BAD: "bold red"}
SCHEDULER = "component=kube-scheduler"
"""How kubeadm labels kube-scheduler's static pods."""


@dataclass(frozen=True, slots=True)
class Finding:
    """where: a node, or the part of the cluster that it is about. grade: good, note (works, but read this), bad."""

    where: str
    topic: str
    grade: str
    text: str


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("--node", action="append", default=[], metavar="NAME", help="this node alone; may be repeated")
    own.add_argument(
        "-o", "--output", choices=FORMATS, default="table", help="(default: table; wide: what is good too)"
    )


def run(given: argparse.Namespace, session: Session) -> int:
    _ = session.api
    findings = [*_of_the_cluster(session), *_of_the_nodes(session, given.node)]
    answer = {"findings": [asdict(finding) for finding in findings]}
    show(answer, given.output, lambda: _rendered(findings, wide=given.output == "wide"))
    return BAD_NEWS if any(finding.grade == BAD for finding in findings) else 0


def _of_the_cluster(session: Session) -> Iterator[Finding]:
    for check in (_extender, _scheduler):
        try:
            yield from check(session)
        except CommandError as bad:
            yield Finding("cluster", check.__name__.strip("_"), BAD, str(bad))


def _extender(session: Session) -> Iterator[Finding]:
    replicas = own_pods(session.api, session.installed_in, EXTENDER)
    running = [pod for pod in replicas if pod.running]
    grade = GOOD if len(running) > 1 else NOTE if running else BAD
    yield Finding("cluster", "extender", grade, f"{len(running)} of {len(replicas)} replicas run")
    if not running:
        return
    answer = get(session.extender, "/api/v1/nodes")
    known = {node["node"]: node for node in answer["nodes"]}
    unheard = answer.get("unreported") or []
    if unheard:
        text = f"nothing has come from the enforcers on {_some(unheard)}, which score 0: see the logs of their pods"
        yield Finding("cluster", "report", BAD, text)
    nodes = {node["metadata"]["name"] for node in session.api.object("/api/v1/nodes")["items"]}
    unknown = sorted(nodes.difference(known, unheard))
    if unknown:
        yield Finding("cluster", "extender", NOTE, f"no enforcer has reported from {_some(unknown)}: they score 0")
    yield from _skew(known)
    for name, node in sorted(known.items()):
        if node.get("powerless"):
            yielded = node["yielded"]
            which = f"{yielded['containers']} of {yielded['members']} containers that opted in"
            text = f"another owner sets the cpusets of {which}: it scores 0; its own findings say who that may be"
            yield Finding(name, "report", BAD, text)
        if not node["live"]:
            yield Finding(
                name, "report", BAD, f"its enforcer last reported {node['age_seconds']:.0f} s ago: it scores 0"
            )


def _skew(known: dict[str, Any]) -> Iterator[Finding]:
    """Enforcers of another report format than the extender that answered."""
    skewed = sorted(name for name, node in known.items() if node.get("skewed"))
    if skewed:
        versions = sorted({str(known[name]["version"] or "unknown") for name in skewed})
        text = (
            f"the enforcers of {_some(skewed)} (version {_some(versions)}) speak another report format than the "
            "extender: their reports are taken without a checksum; finish the upgrade: docs/operations.md, Versions"
        )
        yield Finding("cluster", "versions", NOTE, text)


def _scheduler(session: Session) -> Iterator[Finding]:
    """Whether kube-scheduler is configured with the extender, and whether its calls arrive."""
    pods = [pod for pod in own_pods(session.api, session.installed_in, EXTENDER) if pod.running]
    name = "numakin_extender_requests_total"
    calls, silent = counted(session.api, session.installed_in, pods, name, verb="prioritize")
    if calls:
        least = "at least " if silent else ""
        text = f"kube-scheduler has asked {least}{calls:.0f} times since the replicas began"
        yield Finding("cluster", "scheduler", GOOD, text)
    elif silent or not pods:
        why = f"no metrics are shown by {_some(silent)}" if silent else "no replica runs"
        yield Finding("cluster", "scheduler", NOTE, f"whether kube-scheduler asks is not known: {why}")
    else:
        text = (
            "kube-scheduler has not asked for scores since the replicas began: if pods came meanwhile, give it "
            "scheduler-config/kube-scheduler-config.yaml by --config; see docs/scheduler.md, Reaching the extender"
        )
        yield Finding("cluster", "scheduler", NOTE, text)
    where = "/api/v1/namespaces/kube-system/pods"
    for pod in session.api.object(where, {"labelSelector": SCHEDULER})["items"]:
        container = pod["spec"]["containers"][0]
        arguments = [*(container.get("command") or ()), *(container.get("args") or ())]
        if not any(argument.startswith("--config") for argument in arguments):
            text = "it runs without --config, so that it can't know of the extender"
            yield Finding("cluster", "scheduler", BAD, f"{pod['metadata']['name']}: {text}")


def _of_the_nodes(session: Session, wanted: Iterable[str]) -> Iterator[Finding]:
    pods = of_nodes(own_pods(session.api, session.installed_in, ENFORCER), wanted)
    if not pods:
        yield Finding("cluster", "enforcer", BAD, f"no enforcer's pod is in namespace {session.installed_in}")
    down = [pod for pod in pods if not pod.running]
    yield from (Finding(pod.node or "-", "enforcer", BAD, f"{pod.name} does not run") for pod in down)
    for pod, answer in each([pod for pod in pods if pod.running], lambda pod: _examined(session, pod)):
        yield from [Finding(pod.node, "doctor", BAD, str(answer))] if isinstance(answer, CommandError) else answer


def _examined(session: Session, pod: OwnPod) -> list[Finding]:
    ran = run_in(session.api, session.installed_in, pod, ["numakin-enforcer", "doctor", "--json", *pod.arguments[1:]])
    return _findings(pod.node, ran)


def _findings(node: str, ran: Ran) -> list[Finding]:
    """CommandError when the answer is none."""
    try:
        rows: list[dict[str, Any]] = json.loads(ran.out)
        return [Finding(node, row["topic"], row["grade"], row["text"]) for row in rows]
    except (ValueError, KeyError, TypeError) as bad:
        lines = (ran.err or ran.out).strip().splitlines()
        raise CommandError(f"its doctor failed ({ran.code}): {lines[-1] if lines else 'it printed nothing'}") from bad


def _rendered(findings: list[Finding], *, wide: bool) -> Iterator[Any]:
    rows = table("where", "topic", "grade", "finding")
    for finding in findings:
        if wide or finding.grade != GOOD:
            rows.add_row(finding.where, finding.topic, Text(finding.grade, STYLES[finding.grade]), finding.text)
    if rows.row_count:
        yield rows
    counts = {grade: sum(finding.grade == grade for finding in findings) for grade in STYLES}
    hidden = "" if wide or not counts[GOOD] else " (-o wide shows the good ones too)"
    yield f"{counts[GOOD]} good, {counts[NOTE]} to read, {counts[BAD]} bad{hidden}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
