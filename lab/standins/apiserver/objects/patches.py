"""Merge patch (RFC 7386), JSON patch (RFC 6902) and the part of strategic merge patch that clients of pods and nodes
use.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from lab.standins.apiserver.model import refusals

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "conditions": "type",
    "addresses": "type",
    "ownerReferences": "uid",
    "taints": "key",
}
"""The patchMergeKey of the lists that strategic merge joins by key; all others it replaces."""


def patched(content_type: str, target: Mapping[str, Any], patch: Any) -> dict[str, Any]:
    """The object with the patch; refused as 422 when a JSON patch does not apply."""
    result: dict[str, Any] = _FORMS[content_type](target, patch)
    return result


def _merge(target: Any, patch: Any, join: Callable[[str, Any, Any], Any] | None = None) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif join and isinstance(value, list):
            result[name] = join(name, result.get(name) or [], value)
        else:
            result[name] = _merge(result.get(name), value, join)
    return result


def _strategic(target: Any, patch: Any) -> Any:
    return _merge(target, patch, _joined)


def _joined(name: str, old: list[Any], new: list[Any]) -> list[Any]:
    key = _MERGE_KEYS.get(name)
    if key is None:
        return new
    items = {item[key]: item for item in old}
    for item in new:
        if item.get("$patch") == "delete":
            items.pop(item[key], None)
        else:
            items[item[key]] = _strategic(items.get(item[key]), item)
    return list(items.values())


def _json(target: Any, patch: Any) -> Any:
    result = copy.deepcopy(target)
    for step in patch:
        try:
            result = _json_step(result, step)
        except (KeyError, IndexError, ValueError, TypeError, LookupError) as bad:
            message = "the server rejected our request due to an error in our request"
            raise refusals.Refused(422, message, "Invalid", {}) from bad
    return result


def _json_step(whole: Any, step: Mapping[str, Any]) -> Any:
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
    holder = whole
    for part in parents:
        holder = holder[int(part)] if isinstance(holder, list) else holder[part]
    at: Any = last
    if isinstance(holder, list):
        at = len(holder) if last == "-" else int(last)
    if step["op"] == "test" and holder[at] != step["value"]:
        raise ValueError("test failed")
    if step["op"] in ("remove", "replace"):
        del holder[at]
    if step["op"] in ("add", "replace"):
        if isinstance(holder, list):
            holder.insert(at, step["value"])
        else:
            holder[at] = step["value"]
    return whole


_FORMS: Mapping[str, Callable[[Any, Any], Any]] = {MERGE: _merge, STRATEGIC: _strategic, JSON: _json}
