"""`plan`: where each replica of a manifest would go and why, without creating anything.

The extender scores the pods one after the other on a draft of the cluster, each as if those before it were bound.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from numakin.kubectl.errors import BAD_NEWS, Unanswered
from numakin.kubectl.feasible import feasible
from numakin.kubectl.lean import with_terms
from numakin.kubectl.manifest import pods
from numakin.kubectl.output import FORMATS, show, table
from numakin.kubectl.reach import post
from numakin.kubectl.session import Session

FORBIDDEN = 403

NAME = "plan"
EXAMPLES = """\
examples:
  kubectl numakin plan -f deploy.yaml
  kustomize build . | kubectl numakin plan -f - -o wide

Pods of a Deployment, StatefulSet, ReplicaSet, Job, CronJob or Pod, in the order of the file. Nodes are those that the
pods' node selectors, required node affinity and tolerations allow; kube-scheduler's other filters and its scores, which
may outweigh the extender's, are not asked. With --extender every node is taken.

exit code 1: some replica has no node that would place it
"""


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument(
        "-f", "--filename", required=True, metavar="FILE", help="a manifest (YAML or JSON); -: standard input"
    )
    own.add_argument(
        "-o", "--output", choices=FORMATS, default="table", help="(default: table; wide: what else was weighed)"
    )


def run(given: argparse.Namespace, session: Session) -> int:
    wanted = pods(given.filename, session.namespace)
    nodes = None if given.extender else _nodes(session)
    offered = [sorted(feasible(pod, nodes)) if nodes is not None else None for pod in wanted]
    questions = [
        {"pods": [with_terms(pod) for pod, _ in alike], "nodes": names}
        for names, alike in groupby(zip(wanted, offered, strict=True), key=itemgetter(1))
    ]
    answers = post(session.extender, "/api/v1/plan", {"questions": questions})["pods"]
    show({"pods": answers}, given.output, lambda: _rendered(answers, wide=given.output == "wide"))
    return BAD_NEWS if any(row["opted_in"] and row["node"] is None for row in answers) else 0


def _nodes(session: Session) -> list[dict[str, Any]] | None:
    """None when this user may not list them: then every node is taken. Unanswered when the list is not given."""
    answer = session.api.get("/api/v1/nodes")
    if answer.status == FORBIDDEN:
        print("kubectl numakin: every node is taken, since this user may not list nodes", file=sys.stderr)
        return None
    if answer.status >= 400:
        raise Unanswered(f"the nodes can't be listed: the API server answers {answer.status}: {answer.why}")
    return [dict(node) for node in answer.json().get("items") or ()]


def _rendered(answers: list[dict[str, Any]], *, wide: bool) -> Iterator[Any]:
    rows = table("pod", "node", "numa node", "score", "why", right=("score",))
    for row in answers:
        best = next((candidate for candidate in row["weighed"] if candidate["node"] == row["node"]), None)
        why = row["why"] or "; ".join(best["reasons"] if best else ())
        score = str(best["score"]) if best else "-"
        rows.add_row(row["pod"], row["node"] or "-", row.get("numa_nodes", "-"), score, why)
        for other in row["weighed"] if wide else ():
            if other is not best:
                reasons = "; ".join(filter(None, (other.get("refused"), *other["reasons"])))
                rows.add_row("", other["node"], other.get("numa_nodes", "-"), str(other["score"]), reasons, style="dim")
    yield rows
    yield from dict.fromkeys(f"{row['workload']}: {line}" for row in answers for line in row["annotations_not_taken"])
    ignored = sum(not row["opted_in"] for row in answers)
    if ignored:
        text = f"{ignored} of {len(answers)} pods have no annotation group.numakin.io that counts"
        where = "it belongs into the pods' template (spec.template.metadata.annotations)"
        yield f"{text}: numakin leaves them alone; {where}"
