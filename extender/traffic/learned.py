"""What was learned, written down: a group's members and the edges between workloads, as a short text that the group's
status can carry.

    {"version":1,"names":["shop/Deployment/cart",...],"members":[0],"edges":[[0,1,"tcp",52000,310],...],"uses":[[0,250]]}

Members are those that the group was found for; they, the ends of edges and the workloads of uses are indexes into
names. An edge has its kind, and its bytes and messages a second in four significant digits; a use is what one pod uses
of the CPU, in millicores. Members and uses come first. The heaviest come first, as many as the bound lets in:
what is cut off is what matters least, and is learned again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numakin.placement.model.names import is_workload
from numakin.placement.traffic.graph import KINDS, Amount, Costs, Graph, Key
from numakin.process.log import Log
from numakin.wire.bounds import USE_MILLI

VERSION = 1

MOST_BYTES = 65_536
"""Of one text. etcd takes objects up to 1.5 MiB, and a group's status has more to carry."""

MOST_READ = 4 * MOST_BYTES
"""A longer text is not ours."""

LARGEST_RATE = 2.0**63
"""Bytes or messages a second: sums and weights of what is over that could be infinite, and no pod be scored by them."""

_log = Log("learned")


@dataclass(frozen=True, slots=True)
class LearnedGroup:
    """Of one group. members: the workloads that were found to belong to it, where they did not say so themselves. uses:
    millicores that one pod uses, by workload.
    """

    members: tuple[str, ...] = ()
    edges: Mapping[Key, Amount] = field(default_factory=dict)
    uses: Mapping[str, int] = field(default_factory=dict)


NOTHING = LearnedGroup()


def by_group(
    graph: Graph, groups: Mapping[str, str], by_traffic: Mapping[str, str], uses: Mapping[str, int] = {}
) -> dict[str, LearnedGroup]:
    """Each group's part of the workloads' graph: every edge with one end in a group at least, once, with its source's
    group where it has one. groups: by workload, as its pods declare it; by_traffic: as
    was found for it. uses: of each workload, for its group.
    """
    every = {**by_traffic, **{workload: group for workload, group in groups.items() if group}}
    edges: dict[str, dict[Key, Amount]] = {group: {} for group in every.values()}
    for key, rate in graph.edges.items():
        group = every.get(key.source) or every.get(key.target)
        if group:
            edges[group][key] = rate
    members: dict[str, list[str]] = {}
    for workload in sorted(by_traffic):
        members.setdefault(every[workload], []).append(workload)
    used: dict[str, dict[str, int]] = {}
    for workload in sorted(uses.keys() & every.keys()):
        used.setdefault(every[workload], {})[workload] = uses[workload]
    return {
        group: LearnedGroup(tuple(members.get(group, ())), edges[group], used.get(group, {})) for group in sorted(edges)
    }


def written(learned: LearnedGroup, costs: Costs, most_bytes: int = MOST_BYTES) -> str:
    """At most so many bytes; empty where nothing is known or nothing fits."""
    text = _Text(most_bytes)
    for name in learned.members:
        text.member(name)
    for name, milli in learned.uses.items():
        text.use(name, milli)
    for key in sorted(learned.edges, key=lambda key: (-costs.weight(key.kind, learned.edges[key]), key)):
        if not text.edge(key, learned.edges[key]):
            break
    return str(text)


def read(text: str, where: str) -> LearnedGroup:
    """What a text says; nothing, and a warning that names `where`, of what is none or of another version."""
    if not text:
        return NOTHING
    try:
        return _parsed(text)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as bad:
        _log.warning("what was learned before can't be read", where=where, why=str(bad) or type(bad).__name__)
        return NOTHING


class _Text:
    """Grows while there is room."""

    def __init__(self, most_bytes: int) -> None:
        self._names: dict[str, int] = {}
        self._members: list[str] = []
        self._edges: list[str] = []
        self._uses: list[str] = []
        self._left = most_bytes - len(self._joined()) - len(',"uses":[]')

    def member(self, name: str) -> bool:
        return self._add((name,), lambda ends: str(ends[name]), self._members)

    def use(self, name: str, milli: int) -> bool:
        return self._add((name,), lambda ends: _compact([ends[name], milli]), self._uses)

    def edge(self, key: Key, rate: Amount) -> bool:
        """False when it does not fit."""

        def row(ends: Mapping[str, int]) -> str:
            return _compact([ends[key.source], ends[key.target], key.kind, _short(rate.bytes), _short(rate.messages)])

        return self._add((key.source, key.target), row, self._edges)

    def _add(self, names: Iterable[str], row: Callable[[Mapping[str, int]], str], to: list[str]) -> bool:
        new = [name for name in dict.fromkeys(names) if name not in self._names]
        ends = {**self._names, **{name: len(self._names) + at for at, name in enumerate(new)}} if new else self._names
        text = row(ends)
        # A comma for each: one too many at most.
        size = len(text) + 1 + sum(len(_compact(name)) + 1 for name in new)
        if size > self._left:
            return False
        self._left -= size
        self._names = ends
        to.append(text)
        return True

    def __str__(self) -> str:
        return self._joined() if self._members or self._edges or self._uses else ""

    def _joined(self) -> str:
        names = ",".join(map(_compact, self._names))
        members, edges, uses = ",".join(self._members), ",".join(self._edges), ",".join(self._uses)
        used = f',"uses":[{uses}]' if uses else ""
        return f'{{"version":{VERSION},"names":[{names}],"members":[{members}],"edges":[{edges}]{used}}}'


def _parsed(text: str) -> LearnedGroup:
    if len(text) > MOST_READ:
        raise ValueError(f"it has {len(text)} characters; the bound is {MOST_READ}")
    decoded = json.loads(text)
    version = decoded["version"]
    if version != VERSION:
        raise ValueError(f"it is of version {version!r}; this program reads version {VERSION}")
    names = [_name(name) for name in decoded["names"]]
    members = tuple(names[_index(at)] for at in decoded["members"])
    uses = dict(_use(row, names) for row in decoded.get("uses", ()))  # absent: of a version before there were any
    return LearnedGroup(members, dict(_edge(row, names) for row in decoded["edges"]), uses)


def _name(name: Any) -> str:
    if not (isinstance(name, str) and is_workload(name)):
        raise ValueError(f"{str(name)[:40]!r} is not a workload")
    return name


def _index(at: Any) -> int:
    if not isinstance(at, int) or at < 0:
        raise ValueError(f"{str(at)[:40]!r} is not an index")
    return at


def _use(row: Any, names: list[str]) -> tuple[str, int]:
    at, milli = row
    if not isinstance(milli, int) or not 0 < milli <= USE_MILLI:
        raise ValueError(f"{str(row)[:80]} is not a use")
    return names[_index(at)], milli


def _edge(row: Any, names: list[str]) -> tuple[Key, Amount]:
    source, target, kind, size, messages = row
    rate = Amount(float(size), float(messages))
    if kind not in KINDS or not all(0 <= number <= LARGEST_RATE for number in rate):
        raise ValueError(f"{str(row)[:80]} is not an edge")
    return Key(names[_index(source)], names[_index(target)], kind), rate


def _short(number: float) -> float:
    short = float(f"{number:.4g}")
    return int(short) if short.is_integer() and short < 1e15 else short


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
