"""An AffinityGroup's spec: read field by field, so that one that can't be taken costs only itself.

The definition's schema (manifests/base/affinitygroups-crd.yaml) has the same bounds, but an object may have been stored
before it, or under another version of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from extender.state.group_spec import GroupSpec
from numakin.placement.optin.options import BadValue, Defaults, Policy
from numakin.placement.optin.parsing import LARGEST_SIZE

MOST_PRIORITIES = 100
LARGEST_PRIORITY = 100
MOST_EDGES = 200
LARGEST_WEIGHT = 100

_WORKLOAD = re.compile(r"[A-Z][A-Za-z0-9]{0,62}/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_SHOWN = 64


def read(namespace: str, spec: Any) -> tuple[GroupSpec, tuple[str, ...]]:
    """What of it counts, and for each field that does not, in the order of their names, which it is, its value and
    what is allowed. spec: the decoded JSON; None: there is no spec.
    """
    if spec is None:
        return GroupSpec(), ()
    if not isinstance(spec, Mapping):
        return GroupSpec(), (_problem("spec", spec, "an object"),)
    values: dict[str, Any] = {}
    problems = []
    for name, value in sorted(spec.items(), key=lambda item: str(item[0])):
        read_field = _READERS.get(name)
        if read_field is None:
            problems.append(_problem(f"spec.{name}", value, "the fields " + ", ".join(_READERS)))
            continue
        try:
            values[name] = read_field(namespace, value)
        except BadValue as bad:
            problems.append(_problem(f"spec.{name}", value, str(bad)))
    defaults = Defaults(values.get("policy"), values.get("size", 0))
    return GroupSpec(defaults, values.get("priorities", {}), values.get("edges", {})), tuple(problems)


def _problem(field: str, value: Any, allowed: str) -> str:
    try:
        shown = repr(value)
    except RecursionError:
        shown = "a value that is nested too deeply"
    shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
    return f"{field}: {shown} is not allowed; allowed: {allowed}"


def _policy(_namespace: str, value: Any) -> Policy:
    try:
        return Policy(value)
    except ValueError:
        raise BadValue(", ".join(Policy)) from None


def _priorities(namespace: str, value: Any) -> dict[str, int]:
    """By workload, NAMESPACE/KIND/NAME."""
    if not isinstance(value, list) or len(value) > MOST_PRIORITIES:
        raise BadValue(f"a list of at most {MOST_PRIORITIES}")
    return {f"{namespace}/{workload}": priority for workload, priority in map(_priority, value)}


def _priority(row: Any) -> tuple[str, int]:
    workload = row.get("workload") if isinstance(row, Mapping) else None
    if not isinstance(workload, str) or not _WORKLOAD.fullmatch(workload):
        raise BadValue("a list of {workload: KIND/NAME, priority: NUMBER}")
    return workload, _whole(row.get("priority"), 0, LARGEST_PRIORITY, f"the priority of {workload}: ")


def _edges(namespace: str, value: Any) -> dict[tuple[str, str], int]:
    """By two workloads, NAMESPACE/KIND/NAME."""
    if not isinstance(value, list) or len(value) > MOST_EDGES:
        raise BadValue(f"a list of at most {MOST_EDGES}")
    return {(f"{namespace}/{source}", f"{namespace}/{target}"): weight for source, target, weight in map(_edge, value)}


def _edge(row: Any) -> tuple[str, str, int]:
    if not isinstance(row, Mapping):
        row = {}
    source, target = str(row.get("source")), str(row.get("target"))
    if not (_WORKLOAD.fullmatch(source) and _WORKLOAD.fullmatch(target)) or source == target:
        raise BadValue("a list of {source: KIND/NAME, target: another KIND/NAME, weight: NUMBER}")
    return source, target, _whole(row.get("weight", 1), 1, LARGEST_WEIGHT, f"the weight of {source} to {target}: ")


def _whole(value: Any, least: int, most: int, what: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadValue(f"{what}an integer from {least} to {most}")
    return value


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "policy": _policy,
    "size": lambda _namespace, value: _whole(value, 1, LARGEST_SIZE),
    "priorities": _priorities,
    "edges": _edges,
}
