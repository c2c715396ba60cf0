"""Server-side apply: who owns which field, what an apply changes, and where it meets another owner.

A field is named by its path: steps `f:NAME` into an object and `k:{"KEY":VALUE}` into a list that is a map; the last
step `.` is a list item itself. Atomic lists are one field. This is managedFields' own notation, so that sets of paths
and FieldsV1 are two forms of one thing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lab.standins.apiserver.model.schema import FREE, Schema, child, map_keys

Path = tuple[str, ...]
_UNOWNED = frozenset({("f:apiVersion",), ("f:kind",)})
_OWN_METADATA = ("f:labels", "f:annotations", "f:finalizers", "f:ownerReferences")
_MISSING = object()


@dataclass(frozen=True)
class Owner:
    """One entry of managedFields, and when it was last changed."""

    manager: str
    operation: str
    subresource: str
    fields: frozenset[Path]
    time: str

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.manager, self.operation, self.subresource

    def described(self, api_version: str) -> str:
        """As a conflict's message names it."""
        if self.operation == "Apply":
            return f'"{self.manager}"' + (f' with subresource "{self.subresource}"' if self.subresource else "")
        return f'"{self.manager}" using {api_version}'


def paths(schema: Schema, value: Mapping[str, Any]) -> frozenset[Path]:
    """Every field of an applied object that can have an owner."""
    return frozenset(path for path in _paths(schema, value, ()) if _ownable(path))


def _paths(schema: Schema, value: Any, at: Path) -> Iterator[Path]:
    keys = map_keys(schema)
    if isinstance(value, dict) and value and schema.get("x-kubernetes-map-type") != "atomic":
        for name, inner in value.items():
            yield from _paths(child(schema, name) or FREE, inner, (*at, f"f:{name}"))
    elif isinstance(value, list) and value and keys:
        for item in value:
            here = (*at, _item_step(keys, item))
            yield (*here, ".")
            yield from _paths(schema.get("items", FREE), item, here)
    else:
        yield at


def _ownable(path: Path) -> bool:
    return path not in _UNOWNED and (path[0] != "f:metadata" or (len(path) > 1 and path[1] in _OWN_METADATA))


def _item_step(keys: list[str], item: Mapping[str, Any]) -> str:
    return "k:" + json.dumps({key: item.get(key) for key in sorted(keys)}, separators=(",", ":"))


def value_at(value: Any, path: Path) -> Any:
    """The value of a field; a marker of its own when there is none, equal to itself alone."""
    for step in path:
        if step == ".":
            return True
        value = _step_into(value, step)
        if value is _MISSING:
            return _MISSING
    return value


def _step_into(value: Any, step: str) -> Any:
    if step.startswith("f:"):
        return value.get(step[2:], _MISSING) if isinstance(value, Mapping) else _MISSING
    wanted = json.loads(step[2:])
    items = value if isinstance(value, list) else []
    return next((item for item in items if all(item.get(k) == v for k, v in wanted.items())), _MISSING)


def merged(schema: Schema, old: Any, new: Any) -> Any:
    """The old value with the applied one over it."""
    if isinstance(old, dict) and isinstance(new, dict) and schema.get("x-kubernetes-map-type") != "atomic":
        both = dict(old)
        for name, inner in new.items():
            both[name] = merged(child(schema, name) or FREE, old[name], inner) if name in old else inner
        return both
    keys = map_keys(schema)
    if keys and isinstance(old, list) and isinstance(new, list):
        return _merged_items(schema, keys, old, new)
    return new


def _merged_items(schema: Schema, keys: list[str], old: list[Any], new: list[Any]) -> list[Any]:
    items = {_item_step(keys, item): item for item in old}
    for item in new:
        step = _item_step(keys, item)
        items[step] = merged(schema.get("items", FREE), items[step], item) if step in items else item
    return list(items.values())


def without(value: Any, path: Path) -> Any:
    """The value without that field; objects and items left empty by it are gone too."""
    if len(path) == 1 or path[1] == ".":
        return _dropped(value, path[0])
    inner = _step_into(value, path[0])
    if inner is _MISSING:
        return value
    left = without(inner, path[1:])
    if left in ({}, []):
        return _dropped(value, path[0])
    if path[0].startswith("f:"):
        return {**value, path[0][2:]: left}
    return [left if item is inner else item for item in value]


def _dropped(value: Any, step: str) -> Any:
    if step.startswith("f:"):
        return {name: field for name, field in value.items() if name != step[2:]} if isinstance(value, dict) else value
    inner = _step_into(value, step)
    return [item for item in value if item is not inner]


def conflicts(
    current: Mapping[str, Any], config: Mapping[str, Any], mine: Owner, owners: list[Owner]
) -> list[tuple[Owner, Path]]:
    """The applied fields that another owns with another value."""
    return [
        (other, path)
        for other in owners
        for path in sorted(mine.fields & other.fields)
        if other.identity != mine.identity and value_at(current, path) != value_at(config, path)
    ]


def applied(
    schema: Schema, current: Mapping[str, Any], config: Mapping[str, Any], mine: Owner, owners: list[Owner]
) -> tuple[dict[str, Any], list[Owner]]:
    """The object and its owners after an apply whose conflicts, if any, are forced."""
    taken = {path for _, path in conflicts(current, config, mine, owners)}
    before = next((owner.fields for owner in owners if owner.identity == mine.identity), frozenset())
    others = [_less(owner, taken) for owner in owners if owner.identity != mine.identity]
    others_own: frozenset[Path] = frozenset().union(*(other.fields for other in others))
    rest: Any = current
    # Whole items first: an item that has lost its key can't be found any more.
    for path in sorted(before - mine.fields - others_own, key=lambda path: (path[-1] != ".", path)):
        rest = without(rest, path)
    result = merged(schema, rest, config)
    kept = next((owner for owner in owners if owner.identity == mine.identity and owner.fields == mine.fields), None)
    if kept is not None and result == current:
        return result, list(owners)
    return result, [*(other for other in others if other.fields), *([mine] if mine.fields else [])]


def updated(
    schema: Schema, before: Mapping[str, Any], after: Mapping[str, Any], mine: Owner, owners: list[Owner]
) -> list[Owner]:
    """The owners after a plain write: who changed a field owns it, alone; fields that are gone have no owner."""
    now = paths(schema, after)
    mine_before = next((owner for owner in owners if owner.identity == mine.identity), None)
    changed = {path for path in now if value_at(before, path) != value_at(after, path)}
    others = [_less(owner, changed | (owner.fields - now)) for owner in owners if owner.identity != mine.identity]
    fields = (frozenset(changed) | (mine_before.fields if mine_before else frozenset())) & now
    own = mine_before if mine_before and mine_before.fields == fields and not changed else None
    mine = own or Owner(mine.manager, mine.operation, mine.subresource, fields, mine.time)
    return [*(other for other in others if other.fields), *([mine] if fields else [])]


def _less(owner: Owner, taken: frozenset[Path] | set[Path]) -> Owner:
    left = owner.fields - taken
    return owner if left == owner.fields else Owner(*owner.identity, left, owner.time)


def shown(path: Path) -> str:
    """A path as conflicts name it: `.spec.groups[name="a"].pages`."""
    text = ""
    for step in path:
        if step.startswith("f:"):
            text += "." + step[2:]
        elif step != ".":
            text += "[" + ",".join(f"{k}={json.dumps(v)}" for k, v in json.loads(step[2:]).items()) + "]"
    return text


def to_managed(owner: Owner, api_version: str) -> dict[str, Any]:
    """An entry of metadata.managedFields."""
    tree: dict[str, Any] = {}
    for path in sorted(owner.fields):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    entry = {
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": tree,
        "manager": owner.manager,
        "operation": owner.operation,
    }
    return entry | ({"subresource": owner.subresource} if owner.subresource else {}) | {"time": owner.time}


def from_managed(entry: Mapping[str, Any]) -> Owner:
    return Owner(
        entry["manager"],
        entry["operation"],
        entry.get("subresource", ""),
        frozenset(_leaves(entry["fieldsV1"], ())),
        entry["time"],
    )


def _leaves(tree: Mapping[str, Any], at: Path) -> Iterator[Path]:
    for step, below in tree.items():
        if below:
            yield from _leaves(below, (*at, step))
        else:
            yield (*at, step)
