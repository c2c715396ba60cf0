"""`top`: who talks to whom, by pairs of workloads, live.

The rates are those that the extender has learned: decayed means over the last minutes.
"""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Group, RenderableType

from numakin.kubectl.errors import Unanswered
from numakin.kubectl.output import FORMATS, bytes_of, show, some, table
from numakin.kubectl.reach import get
from numakin.kubectl.session import Session
from numakin.terminal import console, follow, is_redrawn

NAME = "top"
EXAMPLES = """\
examples:
  kubectl numakin top -n shop            live; Ctrl-C ends it
  kubectl numakin top -A --once -o json  once, for machines
"""

SHOWN = 40
"""Pairs, the heaviest, where no terminal says how many lines there are."""


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("-A", "--all-namespaces", action="store_true", help="of every namespace")
    own.add_argument("--once", action="store_true", help="print once, also in a terminal")
    own.add_argument("-o", "--output", choices=FORMATS, default="table", help="(default: table; json and yaml: once)")


def run(given: argparse.Namespace, session: Session) -> int:
    namespace = "" if given.all_namespaces else session.namespace
    out = console()
    if is_redrawn(out) and not given.once and given.output not in ("json", "yaml"):
        follow(
            out, lambda: _asked(session, namespace), lambda graph: _shown(graph, out.height - 6, namespace), Unanswered
        )
    graph = _asked(session, namespace)
    rows = SHOWN if given.output == "table" else len(graph["edges"])
    show(graph, given.output, lambda: [_shown(graph, rows, namespace)])
    return 0


def _asked(session: Session, namespace: str) -> dict[str, Any]:
    """The graph; of one namespace: the edges with an end in it, chosen here too, since older extenders send all."""
    if not namespace:
        everything: dict[str, Any] = get(session.extender, "/api/v1/graph")
        return everything
    graph: dict[str, Any] = get(session.extender, "/api/v1/graph", namespace=namespace)
    start = f"{namespace}/"
    edges = [edge for edge in graph["edges"] if edge["source"].startswith(start) or edge["target"].startswith(start)]
    workloads = [row for row in graph["workloads"] if row["workload"].startswith(start)]
    return {**graph, "edges": edges, "workloads": workloads}


def _nothing(namespace: str, known: int) -> str:
    if known:
        return f"no traffic of namespace {namespace} is known; -A: of all"
    return "no traffic between opted-in pods is known yet; kubectl numakin doctor says which nodes do not observe any"


def _shown(graph: dict[str, Any], rows: int, namespace: str) -> RenderableType:
    if not graph["edges"]:
        return _nothing(namespace, graph["edges_known"])
    made = table("from", "to", "by", "bytes/s", "messages/s", "group", right=("bytes/s", "messages/s"))
    groups = {row["workload"]: row["group"] for row in graph["workloads"]}
    shown = graph["edges"][: max(1, rows)]
    for edge in shown:
        ends = groups.get(edge["source"]), groups.get(edge["target"])
        shared = ends[0] if ends[0] and ends[0] == ends[1] else "-"
        made.add_row(
            edge["source"],
            edge["target"],
            edge["kind"],
            f"{bytes_of(edge['bytes_per_second'])}/s",
            f"{edge['messages_per_second']:,.0f}",
            shared,
        )
    known = f"{len(graph['edges'])} of namespace {namespace}" if namespace else f"{graph['edges_known']} known"
    parts: list[RenderableType] = [f"{len(shown)} pairs shown of {known}", made]
    relays = [name for name in graph["relays"] if name.startswith(f"{namespace}/" if namespace else "")]
    if relays:
        parts.append(f"relays, whose peers are hidden behind them: {some(relays)}")
    return Group(*parts)
