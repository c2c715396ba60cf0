"""`map`: the cluster as numakin sees it: nodes, their NUMA nodes, how full each is, and who is there.

A bar is the share of a NUMA node's CPUs, or memory, that its pods have requested. Members are pods, however many
containers of them are placed one by one.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

from rich.text import Text

from numakin.kubectl.errors import CommandError
from numakin.kubectl.members import by_pod
from numakin.kubectl.output import FORMATS, bytes_of, cpus_of, many, percent, show, some, table
from numakin.kubectl.reach import listed
from numakin.kubectl.session import Session
from numakin.placement.model.cpuset import CpuSet

NAME = "map"
EXAMPLES = """\
examples:
  kubectl numakin map
  kubectl numakin map --node worker-1 -o wide
"""

SHOWN_NODES = 30
"""Nodes unless -o wide: those with most members first."""

BAR = 10
"""Characters of a whole bar."""

COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "bright_cyan", "bright_magenta", "bright_yellow")

Places = Mapping[tuple[str, int], Counter[str]]
"""By node and NUMA node, how many pods of each group."""


def add_options(own: argparse.ArgumentParser) -> None:
    own.add_argument("--node", action="append", default=[], metavar="NAME", help="this node alone; may be repeated")
    own.add_argument("-o", "--output", choices=FORMATS, default="table", help="(default: table; wide: every node)")


def run(given: argparse.Namespace, session: Session) -> int:
    nodes = listed(session.extender, "/api/v1/nodes", "nodes")
    groups = listed(session.extender, "/api/v1/groups", "groups")
    if given.node:
        known = {node["node"] for node in nodes}
        missing = [name for name in given.node if name not in known]
        if missing:
            raise CommandError(f"no enforcer has reported node {missing[0]}; known: {some(sorted(known))}")
        nodes = [node for node in nodes if node["node"] in given.node]
    answer = {"nodes": nodes, "groups": groups}
    wide = given.output == "wide" or bool(given.node)
    members = Counter(node for group in groups for node, _ in by_pod(group["members"]).values())
    show(answer, given.output, lambda: _rendered(nodes, members, _places(groups), wide=wide))
    return 0


def _places(groups: list[dict[str, Any]]) -> Places:
    """A pod over several NUMA nodes is counted on each, as is one whose containers are placed apart."""
    places: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for group in groups:
        for node, numa_nodes in by_pod(group["members"]).values():
            for numa_node in numa_nodes:
                places[node, numa_node][group["group"]] += 1
    return places


def _rendered(nodes: list[dict[str, Any]], members: Counter[str], places: Places, *, wide: bool) -> Iterator[Any]:
    """members: pods by node."""
    if not nodes:
        yield "no enforcer has reported a node yet: see kubectl numakin doctor"
        return
    ranked = sorted(nodes, key=lambda node: (-members[node["node"]], node["node"]))
    shown = ranked if wide else ranked[:SHOWN_NODES]
    rows = table("node", "numa", "cpus", "requested", "memory", "requested ", "members by group", right=("numa",))
    for node in shown:
        for at, numa_node in enumerate(node["numa_nodes"]):
            rows.add_row(
                _name(node) if at == 0 else "", *_cells(numa_node, places.get((node["node"], numa_node["id"])))
            )
            for domain in numa_node.get("cache_domains", ()) if wide else ():
                rows.add_row("", "", *_cache_cells(domain))
    yield _sums(nodes, members)
    yield rows
    if len(shown) < len(nodes):
        yield f"and {len(nodes) - len(shown)} nodes more: -o wide, or --node NAME"


def _sums(nodes: list[dict[str, Any]], members: Counter[str]) -> str:
    """How full all of it is, and of how much something is to be said."""
    numa_nodes = [numa_node for node in nodes for numa_node in node["numa_nodes"]]
    cpus = sum(len(CpuSet.parse(numa_node["cpus"])) for numa_node in numa_nodes)
    requested = sum(numa_node["requested_cpu_milli"] for numa_node in numa_nodes)
    memory = sum(numa_node["memory"] for numa_node in numa_nodes)
    parts = [
        f"{many(len(numa_nodes), 'NUMA node')} on {many(len(nodes), 'node')}",
        f"{cpus_of(requested)} of {cpus} CPUs requested ({percent(requested / max(1, 1000 * cpus))})",
        f"{bytes_of(sum(numa_node['requested_memory'] for numa_node in numa_nodes))} of {bytes_of(memory)} memory",
        f"{many(sum(members[node['node']] for node in nodes), 'member')}",
    ]
    held = sum(numa_node.get("held_cpu_milli", 0) for numa_node in numa_nodes)
    hot = sum(numa_node["hot"] for numa_node in numa_nodes)
    away = sum(not (node["live"] and node["registered"]) for node in nodes)
    parts += [f"{cpus_of(held)} {'CPU' if held == 1000 else 'CPUs'} held for pods to come"] if held else []
    parts += [f"{many(hot, 'NUMA node')} hot"] if hot else []
    parts += [f"{many(away, 'node')} without a working enforcer"] if away else []
    return ", ".join(parts)


def _name(node: dict[str, Any]) -> Text:
    """One that is not registered does not count as live, however lately its enforcer has reported."""
    if not node["registered"] and node["connected"]:
        return Text(f"{node['node']} (not registered with its runtime)", style="red")
    if not node["live"]:
        return Text(f"{node['node']} (silent for {node['age_seconds']:.0f} s)", style="red")
    return Text(node["node"], style="bold")


def _cells(numa_node: dict[str, Any], there: Counter[str] | None) -> Iterator[Text | str]:
    cpus = len(CpuSet.parse(numa_node["cpus"]))
    memory = numa_node["memory"]
    yield Text(f"{numa_node['id']} hot", style="red") if numa_node["hot"] else str(numa_node["id"])
    yield str(cpus)
    yield bar(numa_node["requested_cpu_milli"], cpus * 1000, cpus_of(numa_node["requested_cpu_milli"]))
    yield bytes_of(memory)
    yield bar(numa_node["requested_memory"], memory, bytes_of(numa_node["requested_memory"]))
    parts = [Text(f"{group} x{count}", style=colour(group)) for group, count in (there or Counter()).most_common()]
    yield Text("  ").join(parts)


def _cache_cells(domain: dict[str, Any]) -> Iterator[Text | str]:
    """A last-level cache, or a cluster, within which members are kept."""
    cpus = len(CpuSet.parse(domain["cpus"]))
    yield f"└ {cpus}"
    yield bar(domain["requested_cpu_milli"], cpus * 1000, cpus_of(domain["requested_cpu_milli"]))
    yield ""
    yield ""
    hot = ", too busy: its members have all of the NUMA node" if domain["hot"] else ""
    yield f"cache of CPUs {domain['cpus']}{hot}"


def bar(part: float, whole: float, text: str) -> Text:
    """A share as a bar, then the amount; over nine tenths it is marked."""
    share = min(1.0, part / whole) if whole else 0.0
    full = round(share * BAR)
    style = "red" if share > 0.9 else "yellow" if share > 0.7 else "green"
    return Text.assemble(("█" * full, style), ("░" * (BAR - full), "dim"), f" {share:4.0%} {text}")


def colour(group: str) -> str:
    """Always the same for one group."""
    return COLOURS[crc32(group.encode()) % len(COLOURS)]
