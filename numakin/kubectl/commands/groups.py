"""`groups`: the affinity groups, their members, and how much of each is together.

Locality as the extender reports it: the share of pairs of members on one NUMA node.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from numakin.kubectl.members import by_pod
from numakin.kubectl.output import FORMATS, many, percent, show, table
from numakin.kubectl.reach import listed
from numakin.kubectl.session import Session
from numakin.placement.model.cpuset import NumaSet

NAME = "groups"
EXAMPLES = """\
examples:
  kubectl numakin groups -n shop
  kubectl numakin groups -A -o wide
"""


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("-A", "--all-namespaces", action="store_true", help="of every namespace")
    own.add_argument("-o", "--output", choices=FORMATS, default="table", help="(default: table; wide: every member)")


def run(given: argparse.Namespace, session: Session) -> int:
    groups = listed(session.extender, "/api/v1/groups", "groups")
    if not given.all_namespaces:
        groups = [row for row in groups if row["group"].partition("/")[0] == session.namespace]
    where = "" if given.all_namespaces else f" in namespace {session.namespace}; -A: in all"
    show({"groups": groups}, given.output, lambda: _rendered(groups, where, wide=given.output == "wide"))
    return 0


def _rendered(groups: list[dict[str, Any]], where: str, *, wide: bool) -> Iterator[Any]:
    if not groups:
        yield f"no group has members{where}"
        return
    yield _sums(groups)
    if wide:
        yield from _members(groups)
        return
    rows = table("group", "members", "locality", "where (node:numa node x members)", right=("members", "locality"))
    for group in groups:
        pods = by_pod(group["members"])
        rows.add_row(group["group"], str(len(pods)), percent(group["locality"]), _places(pods.values()))
    yield rows


def _sums(groups: list[dict[str, Any]]) -> str:
    """How many there are, and of how many groups some pods are apart."""
    nodes = {member["node"] for group in groups for member in group["members"]}
    pods = sum(len(by_pod(group["members"])) for group in groups)
    apart = sum(_is_apart(group) for group in groups)
    parts = f"{apart} of them not wholly on one NUMA node" if apart else "each on one NUMA node"
    return f"{many(pods, 'pod')} in {many(len(groups), 'group')} on {many(len(nodes), 'node')}, {parts}"


def _is_apart(group: dict[str, Any]) -> bool:
    """A group of one pod has no locality, and may be over several NUMA nodes."""
    pods = by_pod(group["members"]).values()
    return len({(node, numa_node) for node, numa_nodes in pods for numa_node in numa_nodes}) > 1


def _places(pods: Iterable[tuple[str, NumaSet]]) -> str:
    places = Counter(f"{node}:{numa_nodes}" for node, numa_nodes in pods)
    return ", ".join(f"{place} x{count}" for place, count in places.most_common())


def _members(groups: list[dict[str, Any]]) -> Iterator[Any]:
    rows = table("group", "pod", "node", "numa node", "state")
    for group in groups:
        for member in group["members"]:
            state = "expected" if member["expected"] else "reported"
            where = member["numa_nodes"] or "-"
            if cache := member.get("cache_domain"):
                where += f" (cache of CPUs {cache})"
            rows.add_row(group["group"], member["pod"] or member["uid"], member["node"], where, state)
    yield rows
