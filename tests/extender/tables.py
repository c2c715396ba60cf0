"""The tables that an object holds, found by walking through it: a new one is found without being named anywhere."""

from __future__ import annotations

import types
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any

OURS = ("extender.", "numakin.")
"""Where the classes live whose attributes are walked through."""


def sizes(*roots: object) -> Counter[str]:
    """By CLASS.ATTRIBUTE the entries of all tables there, and of those within them. A bound method leads to its object,
    a function to what it closes over.
    """
    counted: Counter[str] = Counter()
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [("", root) for root in roots]
    keep = []  # what is made on the way lives until the end, so that no two have one id
    while waiting:
        name, found = waiting.pop()
        if id(found) in seen or isinstance(found, str | bytes | int | float | type | types.ModuleType):
            continue
        seen.add(id(found))
        keep.append(found)
        entries = [*_entries(found)]
        if isinstance(found, Mapping | list | set | frozenset | deque):
            counted[name] += len(found)
        waiting += [(name, entry) for entry in entries]
        waiting += _attributes(found)
    return counted


def _entries(found: Any) -> Iterator[Any]:
    if isinstance(found, Mapping):
        yield from [*found.keys(), *found.values()]
    elif isinstance(found, list | tuple | set | frozenset | deque):
        yield from list(found)


def _attributes(found: Any) -> Iterator[tuple[str, Any]]:
    kind = type(found)
    if isinstance(found, types.MethodType):
        yield "", found.__self__
    elif isinstance(found, types.FunctionType):
        for cell in found.__closure__ or ():
            yield "", cell.cell_contents
    elif kind.__module__.startswith(OURS):
        slots = [slot for each in kind.__mro__ for slot in getattr(each, "__slots__", ())]
        names = [*getattr(found, "__dict__", {}), *(slot for slot in slots if hasattr(found, slot))]
        for name in names:
            yield f"{kind.__name__}.{name}", getattr(found, name)
