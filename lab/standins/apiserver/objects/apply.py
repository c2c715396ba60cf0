"""Server-side apply, as far as this project's own writers need it: one manager's fields go with its next apply, and
never over another's.

A field is the path to a value that is no object: a list is one field, and who wrote it otherwise owns nothing. A real
API server's lists by key, schemas and managedFields are looked at in tests/cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.objects.store import Owners

Fields = dict[tuple[str, ...], Any]

_NAMED = ("apiVersion", "kind", "metadata")
"""What says of which object a body is; of the metadata an apply writes labels, annotations and owners."""
_WRITTEN = (("metadata", "labels"), ("metadata", "annotations"), ("metadata", "ownerReferences"))


def applied(current: Mapping[str, Any], config: Mapping[str, Any], owner: str, owners: Owners, *, force: bool) -> Any:
    """The object with what `owner` applies, in place of what it applied before; `owners` is brought up to date. Refused
    where another owner has a field otherwise, unless forced.
    """
    fields = {path: value for path, value in _fields(config).items() if path[0] not in _NAMED or path[:2] in _WRITTEN}
    taken = [
        (other, path)
        for other, theirs in owners.items()
        for path in theirs & fields.keys()
        if other != owner and _value(current, path) != fields[path]
    ]
    if taken and not force:
        raise refusals.apply_conflict(taken)
    for other, path in taken:
        owners[other] -= {path}
    of_others = frozenset[tuple[str, ...]]().union(*(theirs for other, theirs in owners.items() if other != owner))
    result: Any = current
    for path in owners.get(owner, frozenset()) - fields.keys() - of_others:
        result = _without(result, path)
    for path, value in fields.items():
        result = _with(result, path, value)
    owners[owner] = frozenset(fields)
    return result


def _fields(value: Mapping[str, Any], at: tuple[str, ...] = ()) -> Fields:
    fields: Fields = {}
    for name, inner in value.items():
        path = (*at, name)
        fields |= _fields(inner, path) if isinstance(inner, dict) and inner else {path: inner}
    return fields


def _value(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _with(value: Any, path: tuple[str, ...], new: Any) -> Any:
    if not path:
        return new
    inner = dict(value) if isinstance(value, Mapping) else {}
    return {**inner, path[0]: _with(inner.get(path[0]), path[1:], new)}


def _without(value: Any, path: tuple[str, ...]) -> Any:
    """And without objects that are left empty by it."""
    left = {name: inner for name, inner in value.items() if name != path[0]}
    inner = _without(value[path[0]], path[1:]) if len(path) > 1 and path[0] in value else None
    return {**left, path[0]: inner} if inner else left
