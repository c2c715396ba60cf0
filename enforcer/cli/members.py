"""The members of a node as `status` shows them: their sums, a line for each group, and one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

from numakin.placement.model.cpuset import NumaSet

StatusRow = Mapping[str, Any]
"""A container of the hook's answer."""

WORDS = {
    "pinned": "pinned",
    "left open": "left open",
    "yielded": "yielded to another owner of cpusets",
    "conflict": "left to another NRI plugin",
    "refused": "refused by the kernel",
    "released": "released",
    "in a virtual machine": "in a virtual machine, left open",
    "open as asked": "left open as their policy asks",
    "stopped": "stopped",
    "not opted in": "not opted in",
}
"""By state, in the order in which they are summed up."""

UNWELL = frozenset({"left open", "yielded", "conflict", "refused", "released"})
"""States of a member that numakin does not keep near its kin, though the pod asks for it."""

NO_GROUP = "(no group found yet)"


def well(row: StatusRow) -> bool:
    """Whether the container is what its pod asks for, and its cgroup has what it was given."""
    return row["state"] not in UNWELL and not differs(row)


def differs(row: StatusRow) -> bool:
    """Whether the cgroup has something else than it was given."""
    return bool(row["found_cpus"] or row["found_mems"])


def ranked(rows: Iterable[StatusRow]) -> list[StatusRow]:
    """By group, then by name; what has not opted in last."""
    return sorted(rows, key=lambda row: (row["state"] == "not opted in", row["group"], row["pod"], row["container"]))


def sums(rows: Sequence[StatusRow]) -> str:
    """How many there are, and of them how many of each state."""
    members = [row for row in rows if row["state"] != "not opted in"]
    if not members:
        return "no container that opted in runs here"
    states = Counter(row["state"] for row in members)
    parts = [f"{states[state]} {words}" for state, words in WORDS.items() if states[state]]
    if out := sum(bool(row["let_out"]) for row in members):
        parts.append(f"{out} let out of hot NUMA nodes or caches")
    if differing := sum(map(differs, rows)):
        parts.append(f"{differing} with another cpuset than they were given")
    groups = {row["group"] for row in members if row["group"]}
    pods = len({row["pod"] for row in members})
    whose = f"{_many(pods, 'pod')} in {_many(len(groups), 'group')}"
    return f"{_many(len(members), 'container')} of {whose}: {', '.join(parts)}"


def by_group(rows: Iterable[StatusRow]) -> Table:
    """A line for each group."""
    groups: dict[str, list[StatusRow]] = defaultdict(list)
    for row in ranked(rows):
        if row["state"] != "not opted in":
            groups[row["group"] or NO_GROUP].append(row)
    table = Table()
    for column in ("group", "pods", "NUMA node x pods", "not well"):
        table.add_column(column, justify="right" if column == "pods" else "left", overflow="fold")
    for group, own in groups.items():
        table.add_row(group, str(len({row["pod"] for row in own})), _places(own), _unwell(own))
    return table


def one_by_one(rows: Iterable[StatusRow], title: str | None = None) -> Table:
    """A line for each container."""
    table = Table(title=title, title_justify="left")
    for column in ("group", "pod", "container", "state", "NUMA nodes", "CPUs", "mems"):
        table.add_column(column, overflow="fold")
    for row in ranked(rows):
        table.add_row(
            row["group"],
            row["pod"],
            row["container"],
            row["state"],
            row["numa_nodes"] + (f", let out to {row['let_out']}" if row["let_out"] else ""),
            _has(row["cpus"], row["found_cpus"]),
            _has(row["mems"], row["found_mems"]),
        )
    return table


def reasons(rows: Iterable[StatusRow]) -> list[str]:
    """Why each is what it is."""
    return [f"{row['pod']} {row['container']}: {'; '.join(row['reasons'])}" for row in ranked(rows)]


def _places(rows: Iterable[StatusRow]) -> str:
    """How many pods are on which NUMA nodes; nothing of those that have no home."""
    homes: dict[str, NumaSet] = {}
    for row in rows:
        if row["numa_nodes"] and row["state"] == "pinned":
            homes[row["pod"]] = homes.get(row["pod"], NumaSet()) | NumaSet.parse(row["numa_nodes"])
    counts = Counter(map(str, homes.values()))
    return ", ".join(f"{place} x{count}" for place, count in counts.most_common()) or "-"


def _unwell(rows: Iterable[StatusRow]) -> str:
    states = Counter(
        word
        for row in rows
        for word, holds in ((row["state"], row["state"] in UNWELL), ("differs", differs(row)))
        if holds
    )
    return ", ".join(f"{count} {word}" for word, count in states.items()) or "-"


def _has(given: str, found: str) -> str:
    """found: in its cgroup, where that differs."""
    return f"{found}, NOT {given or 'open'}" if found and found != given else given or "open"


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
