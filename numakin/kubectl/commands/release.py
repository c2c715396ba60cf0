"""`release`: gives every pinned container its full cpuset back, before an uninstall; --resume ends it.

On each node `numakin-enforcer release` is run in the enforcer's pod. It lasts over restarts, until it is ended.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from numakin.kubectl.errors import BAD_NEWS, CommandError, UsageError
from numakin.kubectl.output import FORMATS, show, table
from numakin.kubectl.pods import ENFORCER, OwnPod, done_in, each, of_nodes, own_pods
from numakin.kubectl.session import Session, agreed

NAME = "release"
EXAMPLES = """\
examples:
  kubectl numakin release --node worker-1
  kubectl numakin release --all --yes       before an uninstall
  kubectl numakin release --all --resume    containers are pinned again

It takes the right to list pods, and to get and create pods/exec in numakin's namespace.

exit code 1: some node was not released as a whole
"""

RUN_DIR = "/run/numakin"

RELEASE_S = 150.0
"""Longer than the program in the pod waits for its runtime: who is still at it has not failed."""


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("--node", action="append", default=[], metavar="NAME", help="this node; may be repeated")
    own.add_argument("--all", action="store_true", help="every node")
    own.add_argument("--resume", action="store_true", help="end a release")
    own.add_argument("--yes", action="store_true", help="without asking")
    own.add_argument("-o", "--output", choices=FORMATS, default="table", help="(default: table)")


def run(given: argparse.Namespace, session: Session) -> int:
    if bool(given.node) == given.all:
        raise UsageError("name the nodes by --node, or take --all, one of the two")
    pods = of_nodes(own_pods(session.api, session.installed_in, ENFORCER), given.node)
    if not pods:
        raise CommandError(f"no enforcer's pod is in namespace {session.installed_in}")
    verb = "resume" if given.resume else "release"
    if not (given.yes or given.resume):
        agreed(f"Un-pin every container on {len(pods)} nodes until `release --resume`?")
    try:
        rows = [_row(pod, answer) for pod, answer in each(pods, lambda pod: _done(session, pod, verb))]
    except KeyboardInterrupt:
        told = "kubectl numakin doctor says which are released"
        print(f"kubectl numakin: not waited for; nodes that were asked go on: {told}", file=sys.stderr)
        raise
    show({"nodes": rows}, given.output, lambda: [_table(rows)])
    return 0 if all(row["done"] for row in rows) else BAD_NEWS


def _done(session: Session, pod: OwnPod, verb: str) -> str:
    """What it printed. CommandError when it was not carried out as a whole."""
    command = ["numakin-enforcer", verb, f"--run-dir={pod.option('run-dir', RUN_DIR)}"]
    return done_in(session.api, session.installed_in, pod, command, RELEASE_S).strip()


def _row(pod: OwnPod, answer: str | CommandError) -> dict[str, Any]:
    return {"node": pod.node, "done": isinstance(answer, str), "text": str(answer)}


def _table(rows: list[dict[str, Any]]) -> Any:
    made = table("node", "done", "output")
    for row in rows:
        made.add_row(row["node"], "yes" if row["done"] else "NO", row["text"])
    return made
