"""`doctor`: what is wrong on which node, the worst first, with what to run; and whether kube-scheduler asks at all.

Each enforcer's own `numakin-enforcer doctor` is run in its pod, with the options that it runs with. What several nodes
find alike is said once.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from rich.text import Text

from numakin.kubectl.apiserver import ApiServer
from numakin.kubectl.errors import BAD_NEWS, CommandError, Unanswered
from numakin.kubectl.output import FORMATS, show, some
from numakin.kubectl.pods import ENFORCER, EXTENDER, OwnPod, each, of_nodes, own_pods, run_in
from numakin.kubectl.reach import pages
from numakin.kubectl.session import Session

NAME = "doctor"
EXAMPLES = """\
examples:
  kubectl numakin doctor
  kubectl numakin doctor --node worker-1 -o wide

It takes the right to list pods and nodes, and to get and create pods/exec in numakin's namespace.

exit code 1: some finding is bad
"""

GOOD, NOTE, BAD = "good", "note", "bad"
STYLES = {BAD: "bold red", NOTE: "yellow", GOOD: "green"}
"""The worst first."""

CLUSTER, OWNERS = "cluster", "cpusets"
"""Where what is about no node is found, and the topic of other owners of cpusets."""

OWN_PROGRAM = "numakin-enforcer "
"""How the commands begin that an enforcer's doctor names for its own pod; the others are for the node itself."""

SCHEDULER = "component=kube-scheduler"
"""How kubeadm labels kube-scheduler's static pods."""


PORTS = ("health", "metrics", "web")
"""The names that the port of /metrics may have, the likeliest first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """where: a node, or the part of the cluster that it is about. grade: good, note (works, but read this), bad.
    command: what to run, on the node itself unless it begins with kubectl; empty: the text says what to do.
    """

    where: str
    topic: str
    grade: str
    text: str
    command: str = ""


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("--node", action="append", default=[], metavar="NAME", help="this node alone; may be repeated")
    own.add_argument(
        "-o", "--output", choices=FORMATS, default="table", help="(default: table; wide: what is good too)"
    )


def run(given: argparse.Namespace, session: Session) -> int:
    _ = session.api
    own = [*_of_the_nodes(session, given.node)]
    owned = {finding.where for finding in own if (finding.topic, finding.grade) == (OWNERS, BAD)}
    told = [
        finding
        for finding in _of_the_cluster(session)
        if finding.where == CLUSTER or not given.node or finding.where in given.node
        if finding.topic != OWNERS or finding.where not in owned  # that node says it itself, and more
    ]
    findings = sorted([*told, *own], key=lambda finding: [*STYLES].index(finding.grade))
    answer = {"findings": [asdict(finding) for finding in findings]}
    show(answer, given.output, lambda: _rendered(findings, wide=given.output == "wide"))
    return BAD_NEWS if any(finding.grade == BAD for finding in findings) else 0


def _of_the_cluster(session: Session) -> Iterator[Finding]:
    for check in (_extender, _scheduler):
        try:
            yield from check(session)
        except CommandError as bad:
            yield Finding(CLUSTER, check.__name__.strip("_"), BAD, str(bad))


def _extender(session: Session) -> Iterator[Finding]:
    namespace = session.installed_in
    replicas = own_pods(session.api, namespace, EXTENDER)
    running = [pod for pod in replicas if pod.running]
    grade = GOOD if len(running) > 1 else NOTE if running else BAD
    text = f"{len(running)} of {len(replicas)} replicas run"
    more = ": while one alone is away, kube-scheduler has no scores" if len(running) == 1 else ""
    if not replicas:
        more = f" in namespace {namespace}: is numakin installed there? name its namespace by --numakin-namespace"
    shown = f"kubectl -n {namespace} get pods -o wide -l app.kubernetes.io/name={EXTENDER}"
    yield Finding(CLUSTER, "extender", grade, text + more, shown if grade != GOOD else "")
    for pod in running:
        if not pod.ready:
            text = f"{pod.name} is not ready: kube-scheduler gets no scores from it"
            yield Finding(CLUSTER, "extender", BAD, text, f"kubectl -n {namespace} logs {pod.name} --tail=50")
    if running:
        yield from _reports(session)


def _reports(session: Session) -> Iterator[Finding]:
    """From which nodes the extender has reports that it can go by."""
    namespace = session.installed_in
    enforcers = {pod.node: pod for pod in own_pods(session.api, namespace, ENFORCER)}
    all_of_them = f"kubectl -n {namespace} get pods -o wide -l app.kubernetes.io/name={ENFORCER}"

    def logs(node: str) -> str:
        pod = enforcers.get(node)
        return f"kubectl -n {namespace} logs {pod.name} --tail=50" if pod is not None else all_of_them

    def status(node: str) -> str:
        pod = enforcers.get(node)
        return _from_here(pod, namespace, "numakin-enforcer status") if pod is not None else all_of_them

    answers = list(pages(session.extender, "/api/v1/nodes"))
    known = {node["node"]: node for answer in answers for node in answer["nodes"]}
    unheard = answers[-1].get("unreported") or []
    if unheard:
        text = f"nothing has come from the enforcers on {some(unheard)}, which score 0: see the logs of their pods"
        yield Finding(CLUSTER, "report", BAD, text, logs(unheard[0]))
    yield from _unreported(session, {*known, *unheard}, all_of_them)
    yield from _skew(known, namespace)
    for name, node in sorted(known.items()):
        if node.get("powerless"):
            yielded = node["yielded"]
            which = f"{yielded['containers']} of {yielded['members']} containers that opted in"
            text = f"another owner sets the cpusets of {which}: it scores 0; let one of them set cpusets there"
            yield Finding(name, OWNERS, BAD, text, status(name))
        if not node["registered"]:
            text = "its enforcer is not registered with the container runtime: it scores 0, and pods start unpinned"
            yield Finding(name, "report", BAD, text, logs(name))
        elif not node["live"]:
            text = f"its enforcer last reported {node['age_seconds']:.0f} s ago: it scores 0"
            yield Finding(name, "report", BAD, text, logs(name))


def _unreported(session: Session, heard: Collection[str], shown: str) -> Iterator[Finding]:
    """The nodes without an enforcer. heard: that the extender knows of. shown: the command that shows all enforcers."""
    try:
        nodes = {node["metadata"]["name"] for node in session.api.listed("/api/v1/nodes")}
    except Unanswered as bad:
        yield Finding(CLUSTER, "extender", NOTE, f"whether some nodes have no enforcer is not known: {bad}")
        return
    unknown = sorted(nodes.difference(heard))
    if unknown:
        text = f"no enforcer has reported from {some(unknown)}: they score 0"
        yield Finding(CLUSTER, "extender", NOTE, text, shown)


def _skew(known: dict[str, Any], namespace: str) -> Iterator[Finding]:
    """Enforcers of another report format than the extender that answered."""
    skewed = sorted(name for name, node in known.items() if node.get("skewed"))
    if skewed:
        versions = sorted({str(known[name]["version"] or "unknown") for name in skewed})
        text = (
            f"the enforcers of {some(skewed)} (version {some(versions)}) speak another report format than the "
            "extender: their reports are taken without a checksum; finish the upgrade: docs/operations.md, Versions"
        )
        yield Finding(
            CLUSTER, "versions", NOTE, text, f"kubectl -n {namespace} rollout status daemonset/numakin-enforcer"
        )


def _scheduler(session: Session) -> Iterator[Finding]:
    """Whether kube-scheduler is configured with the extender, and whether its calls arrive."""
    pods = [pod for pod in own_pods(session.api, session.installed_in, EXTENDER) if pod.running]
    name = "numakin_extender_requests_total"
    calls, silent = counted(session.api, session.installed_in, pods, name, verb="prioritize")
    if calls:
        least = "at least " if silent else ""
        text = f"kube-scheduler has asked {least}{calls:.0f} times since the replicas began"
        yield Finding(CLUSTER, "scheduler", GOOD, text)
    elif silent or not pods:
        why = f"no metrics are shown by {some(silent)}" if silent else "no replica runs"
        shown = f"kubectl -n {session.installed_in} get pods -o wide -l app.kubernetes.io/name={EXTENDER}"
        yield Finding(CLUSTER, "scheduler", NOTE, f"whether kube-scheduler asks is not known: {why}", shown)
    else:
        yield _unasked(session, pods)
    yield from _unconfigured(session)


def _unconfigured(session: Session) -> Iterator[Finding]:
    """Whether one of the static pods that kubeadm makes runs without a configuration."""
    where = "/api/v1/namespaces/kube-system/pods"
    try:
        pods = list(session.api.listed(where, {"labelSelector": SCHEDULER}))
    except Unanswered as bad:
        yield Finding(CLUSTER, "scheduler", NOTE, f"whether kube-scheduler runs with --config is not known: {bad}")
        return
    for pod in pods:
        container = pod["spec"]["containers"][0]
        arguments = [*(container.get("command") or ()), *(container.get("args") or ())]
        if not any(argument.startswith("--config") for argument in arguments):
            text = "it runs without --config, so that it can't know of the extender: docs/scheduler.md"
            name = pod["metadata"]["name"]
            shown = f"kubectl -n kube-system describe pod {name}"
            yield Finding(CLUSTER, "scheduler", BAD, f"{name}: {text}", shown)


def _unasked(session: Session, pods: Iterable[OwnPod]) -> Finding:
    """Why kube-scheduler may not have asked. That a call for scores failed it logs from --v=5 on alone."""
    limits = "numakin_extender_over_limit_total"
    refused, _ = counted(session.api, session.installed_in, pods, limits, limit="certificate")
    unasked = "kube-scheduler has not asked for scores since the replicas began"
    if refused:
        text = (
            f"{unasked}, and somebody was not let in, as the extender's log says: most often its files of the Secret "
            "numakin-kube-scheduler are missing or old; see docs/operations.md, Certificates"
        )
        logs = f"kubectl -n {session.installed_in} logs -l app.kubernetes.io/name={EXTENDER} --tail=-1"
        return Finding(CLUSTER, "scheduler", NOTE, text, f"{logs} | grep 'not let in'")
    text = (
        f"{unasked}: if pods came meanwhile, give it scheduler-config/kube-scheduler-config.yaml by --config; see "
        "docs/scheduler.md, Reaching the extender; with --v=5 its log says why a call failed"
    )
    shown = f"kubectl -n kube-system logs -l {SCHEDULER} --tail=-1 | grep -i extender"
    return Finding(CLUSTER, "scheduler", NOTE, text, shown)


def _of_the_nodes(session: Session, wanted: Iterable[str]) -> Iterator[Finding]:
    pods = of_nodes(own_pods(session.api, session.installed_in, ENFORCER), wanted)
    namespace = session.installed_in
    if not pods:
        shown = f"kubectl -n {namespace} get daemonset {ENFORCER}"
        yield Finding(CLUSTER, "enforcer", BAD, f"no enforcer's pod is in namespace {namespace}", shown)
    for pod in pods:
        if not (pod.running and pod.ready):
            text = f"{pod.name} {'is not ready' if pod.running else 'does not run'}"
            yield Finding(pod.node or "-", "enforcer", BAD, text, f"kubectl -n {namespace} describe pod {pod.name}")
    for pod, answer in each([pod for pod in pods if pod.running], lambda pod: _examined(session, pod)):
        if isinstance(answer, CommandError):
            shown = f"kubectl -n {namespace} logs {pod.name} --tail=50"
            yield Finding(pod.node, "doctor", BAD, str(answer), shown)
        else:
            yield from answer


def _examined(session: Session, pod: OwnPod) -> list[Finding]:
    """CommandError when the answer is none."""
    namespace = session.installed_in
    ran = run_in(session.api, namespace, pod, ["numakin-enforcer", "doctor", "--json", *pod.arguments[1:]])
    try:
        rows: list[dict[str, Any]] = json.loads(ran.out)
        return [
            Finding(
                pod.node, row["topic"], row["grade"], row["text"], _from_here(pod, namespace, row.get("command", ""))
            )
            for row in rows
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as bad:
        lines = (ran.err or ran.out).strip().splitlines()
        raise CommandError(f"its doctor failed ({ran.code}): {lines[-1] if lines else 'it printed nothing'}") from bad


def _from_here(pod: OwnPod, namespace: str, command: str) -> str:
    """A command of the node's doctor: numakin's own program is run in the enforcer's pod, all else on the node."""
    own = command.startswith(OWN_PROGRAM)
    return f"kubectl -n {namespace} exec {pod.name} -- {command}" if own else command


def _rendered(findings: list[Finding], *, wide: bool) -> Iterator[Any]:
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        if wide or finding.grade != GOOD:
            alike.setdefault((finding.grade, finding.topic, finding.text), []).append(finding)
    for (grade, topic, text), found in alike.items():
        where = some(list(dict.fromkeys(each.where for each in found)))
        yield Text.assemble((f"{grade:5}", STYLES[grade]), (where, "bold"), f"  {topic}: {text}")
        if found[0].command:
            here = found[0].command.startswith("kubectl ")
            yield f"       {'$' if here else f'on {found[0].where}: $'} {found[0].command}"
    counts = {grade: sum(finding.grade == grade for finding in findings) for grade in STYLES}
    hidden = "" if wide or not counts[GOOD] else " (-o wide shows the good ones too)"
    yield f"{counts[BAD]} bad, {counts[NOTE]} to read, {counts[GOOD]} good{hidden}"


def counted(
    api: ApiServer, namespace: str, pods: Iterable[OwnPod], name: str, **labels: str
) -> tuple[float, list[str]]:
    """A counter's sum over these pods and over all labels but the given, and the pods that show no metrics."""
    shown = {pod.name: _samples(_metrics(api, namespace, pod), name) for pod in pods}
    total = sum(
        sample.value
        for samples in shown.values()
        for sample in samples or ()
        if sample.name == name and labels.items() <= sample.labels.items()
    )
    return total, [pod for pod, samples in shown.items() if samples is None]


def _samples(text: str, counter: str) -> list[Sample] | None:
    """None where the text has no such counter: then it is not what an extender shows."""
    try:
        families = {family.name: family.samples for family in text_string_to_metric_families(text)}
    except ValueError:
        return None
    return families.get(counter.removesuffix("_total"))


def _metrics(api: ApiServer, namespace: str, pod: OwnPod) -> str:
    """What the pod answers; empty where nothing does."""
    port = next((pod.ports[each] for each in PORTS if each in pod.ports), None)
    if port is None:
        return ""
    for scheme in ("https:", "http:"):
        answer = api.get(f"/api/v1/namespaces/{namespace}/pods/{scheme}{pod.name}:{port}/proxy/metrics")
        if answer.status == 200:
            return answer.body.decode(errors="replace")
    return ""
