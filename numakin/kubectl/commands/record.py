"""`record`: writes the cluster's traffic, its pods and its machines into a file, for `replay`.

On each node `numakin-enforcer record` is run in the enforcer's pod. Of the pods only what placement reads is written.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from numakin.compare.options import whole
from numakin.kubectl.errors import BAD_NEWS, CommandError, UsageError
from numakin.kubectl.members import by_pod
from numakin.kubectl.pods import ENFORCER, EXEC_S, OwnPod, done_in, each, own_pods
from numakin.kubectl.reach import listed
from numakin.kubectl.recordings import writing
from numakin.kubectl.session import Session
from numakin.terminal import legible

NAME = "record"
EXAMPLES = """\
examples:
  kubectl numakin record traffic.jsonl --seconds 120
  kubectl numakin replay traffic.jsonl

It takes the right to list pods in all namespaces, and to get and create pods/exec in numakin's.

exit code 1: some node's traffic is not in the file
"""

PORT = "16862"
"""The enforcer's, unless its --metrics-listen says otherwise."""


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("file", type=Path, metavar="FILE", help="must not exist yet")
    own.add_argument("--seconds", type=whole(1, 3_600), default=60, metavar="N", help="(default: %(default)s)")


def run(given: argparse.Namespace, session: Session) -> int:
    if os.path.lexists(given.file):
        raise UsageError(f"{given.file}: File exists")
    enforcers = [pod for pod in own_pods(session.api, session.installed_in, ENFORCER) if pod.running]
    if not enforcers:
        raise CommandError(f"no enforcer runs in namespace {session.installed_in}")
    pods = [pod for pod in session.api.listed("/api/v1/pods") if _opted_in(pod)]
    groups = listed(session.extender, "/api/v1/groups", "groups")
    places = {uid: str(place) for group in groups for uid, (_, place) in by_pod(group["members"]).items()}
    nodes = listed(session.extender, "/api/v1/nodes", "nodes")
    missing = windows = 0
    part = given.file.with_name(f"{given.file.name}.{os.getpid()}.part")
    try:
        with part.open("x") as out:
            out.write(writing.header(pods, nodes, places) + "\n")
            # All at the same time: windows of different times tell nothing about who talks more.
            answers = each(enforcers, lambda pod: _recorded(session, pod, given.seconds), len(enforcers))
            for pod, answer in answers:
                if isinstance(answer, CommandError):
                    missing += 1
                    print(f"kubectl numakin: {pod.node}: {legible(str(answer))}", file=sys.stderr)
                    continue
                out.writelines(writing.line(pod.node, window) + "\n" for window in answer)
                windows += len(answer)
        part.rename(given.file)
    except OSError as bad:
        raise UsageError(f"{given.file}: {bad.strerror or bad}") from bad
    finally:
        with suppress(OSError):
            part.unlink()
    print(f"{given.file}: {windows} windows of {len(enforcers) - missing} nodes, {len(pods)} pods")
    return BAD_NEWS if missing else 0


def _opted_in(pod: dict[str, Any]) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Running", "Pending") and any(key.startswith("group.numakin.io") for key in annotations)


def _recorded(session: Session, pod: OwnPod, seconds: int) -> list[str]:
    port = pod.option("metrics-listen", f":{PORT}").rpartition(":")[2]
    command = ["numakin-enforcer", "record", "/dev/stdout", f"--seconds={seconds}", f"--metrics=127.0.0.1:{port}"]
    out = done_in(session.api, session.installed_in, pod, command, seconds + EXEC_S)
    return [line for line in out.splitlines() if line.startswith("{")]
