"""`regroup`: the groups that are cut over nodes, and which of their pods, evicted, would bring them together.

The extender looks for them all the time; nothing is evicted by asking. --evict carries the plan of one group out, once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from numakin.kubectl.errors import BAD_NEWS, CommandError, UsageError
from numakin.kubectl.evicting import Evicting, searched
from numakin.kubectl.output import FORMATS, many, percent, show, table
from numakin.kubectl.session import Session, agreed
from numakin.kubectl.undoing import interrupted
from numakin.terminal import legible

NAME = "regroup"
EXAMPLES = """\
examples:
  kubectl numakin regroup -A                         every group that is cut, and what it would take
  kubectl numakin regroup boutique -n shop           pod by pod: where it is, and where it would come anew
  kubectl numakin regroup boutique -n shop --evict   one pod after the other is evicted, as PodDisruptionBudgets allow

Locality is the share of the group's traffic inside one NUMA node, or of its pairs of pods where no traffic is known.

--evict takes the right to create pods/eviction there, and to get, list and patch AffinityGroups.

exit code 1: the group that is named is not cut, or not known; or a pod in an evicted one's place did not come there
"""


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("group", nargs="?", default="", metavar="GROUP", help="this one alone, also as NAMESPACE/NAME")
    own.add_argument("-A", "--all-namespaces", action="store_true", help="of every namespace")
    own.add_argument("--evict", action="store_true", help="carry the plan of the group that is named out, once")
    own.add_argument("--yes", action="store_true", help="without asking")
    own.add_argument("-o", "--output", choices=FORMATS, default="table", help="(default: table; wide: every pod)")


def run(given: argparse.Namespace, session: Session) -> int:
    group = named_group(given, session)
    if given.evict:
        return _evict(given, session, group)
    answer = searched(session.extender, group)
    if group and not answer["groups"]:
        raise CommandError(f"group {group} is not cut over nodes, or has no pods; kubectl numakin groups -A lists all")
    if not group and not given.all_namespaces:
        rows = [row for row in answer["groups"] if row["group"].partition("/")[0] == session.namespace]
        answer = {**answer, "groups": rows}
    where = "" if given.all_namespaces else f" in namespace {session.namespace}; -A: in all"
    show(answer, given.output, lambda: _rendered(answer, where, pods=bool(group) or given.output == "wide"))
    return 0


def _evict(given: argparse.Namespace, session: Session, group: str) -> int:
    if not group:
        raise UsageError("--evict is for one group: name it")
    if not given.yes:
        agreed(f"Evict pods of {group}, one after the other?")
    evicting = Evicting(session.api, session.extender, group, lambda text: print(legible(text), file=sys.stderr))
    with interrupted():
        rows = evicting.carry_out()
    show({"group": group, "steps": rows}, given.output, lambda: [_outcomes(rows)])
    return 0 if rows and all(row["done"] for row in rows) else BAD_NEWS


def _outcomes(rows: list[dict[str, Any]]) -> Any:
    made = table("pod", "expected on", "came", "what happened")
    for row in rows:
        made.add_row(row["pod"], f"{row['node']}:{row['numa_node']}", "yes" if row["done"] else "NO", row["text"])
    return made


def named_group(given: argparse.Namespace, session: Session) -> str:
    """NAMESPACE/NAME; empty where none is named."""
    if not given.group:
        return ""
    namespace, slash, name = given.group.rpartition("/")
    if not name or "/" in namespace or (slash and not namespace):
        raise UsageError(f"a group is NAME or NAMESPACE/NAME, not {given.group!r}")
    if given.all_namespaces or (namespace and given.namespace not in ("", namespace)):
        raise UsageError(f"one group is named, {given.group}: leave -A and another namespace away")
    return f"{namespace or session.namespace}/{name}"


def _rendered(answer: Mapping[str, Any], where: str, *, pods: bool) -> Iterator[Any]:
    groups = answer["groups"]
    if not groups:
        yield f"no group is cut over nodes{where}"
        return
    yield _sums(groups)
    rows = table("group", "members by node", "restarts", "then", "locality", "why", right=("restarts",))
    for group in groups:
        plan = group["plan"]
        then = _nodes(plan["nodes"]) if plan else "-"
        locality = f"{percent(plan['locality'])} -> {percent(plan['reached'])}" if plan else "-"
        restarts = str(plan["restarts"]) if plan else "-"
        rows.add_row(group["group"], _nodes(group["nodes"]), restarts, then, locality, group["why"])
    yield rows
    if pods:
        yield from _steps([group for group in groups if group["plan"]])


def _sums(groups: list[dict[str, Any]]) -> str:
    plans = [group["plan"] for group in groups if group["plan"]]
    restarts, whole = sum(plan["restarts"] for plan in plans), sum(plan["whole"] for plan in plans)
    cut = f"{many(len(groups), 'group')} cut over nodes"
    if not plans:
        return f"{cut}; nothing to evict would help"
    return f"{cut}; {many(restarts, 'pod')} evicted would bring {len(plans)} closer together, {whole} onto one node"


def _nodes(nodes: Mapping[str, int]) -> str:
    return ", ".join(f"{node} x{count}" for node, count in nodes.items())


def _steps(groups: list[dict[str, Any]]) -> Iterator[Any]:
    if not groups:
        return
    rows = table("group", "pod", "now", "then", "gain", right=("gain",))
    for group in groups:
        for step in group["plan"]["steps"]:
            now, then = f"{step['node']}:{step['numa_nodes']}", f"{step['to_node']}:{step['to_numa_node']}"
            rows.add_row(group["group"], step["pod"].partition("/")[2], now, then, f"{step['gain']:.1%}")
    yield ""
    yield rows
