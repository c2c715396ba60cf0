"""`explain`: why a pod is, or would be, where it is.

What the extender weighed node by node, what it nominated, and what the node's enforcer made of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from numakin.kubectl.errors import UsageError
from numakin.kubectl.output import FORMATS, show, table
from numakin.kubectl.reach import get
from numakin.kubectl.session import Session

NAME = "explain"
EXAMPLES = """\
examples:
  kubectl numakin explain pod cart-0 -n shop
  kubectl numakin explain pod/cart-0 -o json
  kubectl numakin explain shop/cart-0
"""

KINDS = ("pod", "pods", "po")

OTHER_KINDS = (
    "deploy",
    "deployment",
    "deployments",
    "sts",
    "statefulset",
    "ds",
    "daemonset",
    "rs",
    "replicaset",
    "job",
)

SHOWN_NODES = 10
"""Nodes in the table unless -o wide: the best. No others are asked for: the extender decides anew for each."""


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("what", nargs="+", metavar="pod NAME", help="the pod, also as pod/NAME, NAME or NAMESPACE/NAME")
    own.add_argument("-o", "--output", choices=FORMATS, default="table", help="(default: table; wide: every node)")


def run(given: argparse.Namespace, session: Session) -> int:
    namespace, name = named_pod(given.what)
    if namespace and given.namespace not in ("", namespace):
        raise UsageError(f"two namespaces are named, {namespace} and {given.namespace}")
    query = {"namespace": namespace or session.namespace, "pod": name}
    if given.output == "table":
        query["nodes"] = str(SHOWN_NODES)
    answer = get(session.extender, "/api/v1/explain", **query)
    show(answer, given.output, lambda: _rendered(answer, wide=given.output == "wide"))
    return 0


def named_pod(arguments: list[str]) -> tuple[str, str]:
    """Namespace, empty where none is named, and name of `pod NAME`, `pod/NAME`, `NAME`, or with NAMESPACE/NAME as NAME;
    UsageError for anything else.
    """
    kind, _, name = arguments[0].partition("/") if len(arguments) == 1 else (arguments[0], "", arguments[1])
    if len(arguments) == 1 and kind not in KINDS:
        kind, name = "", arguments[0]
    namespace, _, pod = name.rpartition("/")
    if len(arguments) > 2 or kind not in ("", *KINDS) or "/" in namespace:
        raise UsageError(f"one pod can be explained, as pod NAME or NAMESPACE/NAME, not {' '.join(arguments)!r}")
    if namespace in OTHER_KINDS:
        raise UsageError(f"one pod can be explained, and {name} is none: name one of its pods")
    if not pod:
        raise UsageError("the pod's name is missing: kubectl numakin explain pod NAME")
    return namespace, pod


def _rendered(answer: dict[str, Any], *, wide: bool) -> Iterator[Any]:
    if answer.get("summary"):
        yield Text(answer["summary"], style="bold")
    yield f"pod {answer['pod']}" + (f", group {answer['group']}" if answer.get("group") else "")
    if answer.get("membership"):
        yield answer["membership"]
    if answer.get("expected"):
        yield _expected(answer["expected"])
    if answer.get("held"):
        yield "held for its group's pods that wait for a node: " + "; ".join(map(_held, answer["held"]))
    if regroup := answer.get("regroup"):
        yield f"its group is {regroup['why']}" + ("; kubectl numakin regroup shows which" if regroup["plan"] else "")
    if answer.get("happened"):
        yield ""
        yield _happened(answer["happened"])
    elif answer.get("expected") or not answer.get("summary"):
        yield "no enforcer has reported a container of it yet"
    if answer.get("unscored"):
        yield answer["unscored"]
    if answer.get("scored"):
        yield ""
        yield from _scored(answer["scored"], wide=wide)
    elif not answer.get("unscored"):
        yield "how nodes were scored is not known: another replica answered, it was not asked, or it is long ago"


def _expected(expected: dict[str, Any]) -> str:
    place = f"{expected['node']}, NUMA node {expected['numa_nodes']}"
    if expected["bound"]:
        return f"bound to {place}, where its room is held until its enforcer reports it"
    return f"room is held on {place}; its enforcer has {expected['expires_in_seconds']:.0f} s left to report"


def _held(held: dict[str, Any]) -> str:
    return f"{held['cpu_milli'] / 1000:g} CPUs on {held['node']}, NUMA node {held['numa_node']}"


def _happened(happened: list[dict[str, Any]]) -> Any:
    """What its enforcer decided, the latest last."""
    rows = table("container", "at", "numa node", "cpus", "memory", "nomination", "why")
    for row in happened:
        nominated = f" (NUMA node {row['nominated']})" if row.get("nominated") else ""
        rows.add_row(
            row["container"] or "-",
            row["event"],
            row["numa_nodes"] or "-",
            row["cpus"] or "open",
            row["mems"] or "open",
            row["nomination"] + nominated,
            "; ".join(row["reasons"]),
        )
    return rows


def _scored(scored: dict[str, Any], *, wide: bool) -> Iterator[Any]:
    nodes = scored["nodes"]
    shown, count = nodes if wide else nodes[:SHOWN_NODES], scored["nodes_scored"]
    yield f"scored {scored['seconds_ago']:.0f} s ago on {count} nodes, each as its enforcer would decide:"
    rows = table("node", "score", "numa node", "fits", "why", right=("score",))
    for node in shown:
        fits = {True: "yes", False: "no"}.get(node.get("fits"), "-")
        style = "green" if node is nodes[0] and node["score"] else ""
        rows.add_row(
            node["node"], str(node["score"]), node.get("numa_nodes", "-"), fits, "; ".join(node["reasons"]), style=style
        )
    yield rows
    if count > len(shown):
        yield f"and {count - len(shown)} more: -o wide"
