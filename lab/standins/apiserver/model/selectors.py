"""Field and label selectors, from their query form to a predicate."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.model.kinds import Kind

Object = Mapping[str, Any]
Predicate = Callable[[Object], bool]

_SET_BASED = re.compile(r"([\w./-]+)\s+(in|notin)\s+\(([^)]*)\)")
_REQUIREMENT = re.compile(r"(?:[^,(]|\([^)]*\))+")


def everything(_object: Object) -> bool:
    return True


def predicate(kind: Kind, field_selector: str, label_selector: str) -> Predicate:
    """Refused when the kind does not support a field label, or the syntax is wrong."""
    tests = [_field(kind, part) for part in field_selector.split(",") if part]
    tests += [_label(part.strip()) for part in _REQUIREMENT.findall(label_selector)]
    return (lambda item: all(test(item) for test in tests)) if tests else everything


def _field(kind: Kind, part: str) -> Predicate:
    label, negated, value = _split(part)
    if label not in kind.field_labels:
        raise refusals.bad_request(f"field label not supported: {label}")
    path = label.split(".")
    return lambda item: (_reached(item, path) == value) is not negated


def _split(part: str) -> tuple[str, bool, str]:
    for operator, negated in (("!=", True), ("==", False), ("=", False)):
        label, separator, value = part.partition(operator)
        if separator:
            return label.strip(), negated, value.strip()
    raise refusals.bad_request(f"invalid selector: '{part}'; can't understand '{part}'")


def _reached(value: Any, path: list[str]) -> str:
    for step in path:
        if not isinstance(value, Mapping):
            return ""
        value = value.get(step)
    return "" if value is None else str(value)


def _label(part: str) -> Predicate:
    set_based = _SET_BASED.fullmatch(part)
    if set_based:
        key, operator, listed = set_based.groups()
        values = {value.strip() for value in listed.split(",")}
        return lambda item: (_labels_of(item).get(key) in values) is (operator == "in")
    if "=" in part:
        key, negated, value = _split(part)
        return lambda item: (_labels_of(item).get(key) == value) is not negated
    absent = part.startswith("!")
    key = part.removeprefix("!").strip()
    if not re.fullmatch(r"[\w./-]+", key):
        raise refusals.bad_request(f"unable to parse requirement: found '{part}', expected: identifier")
    return lambda item: (key in _labels_of(item)) is not absent


def _labels_of(item: Object) -> Mapping[str, str]:
    labels: Mapping[str, str] = item["metadata"].get("labels") or {}
    return labels
