"""How members are placed on this node, in one option: NAME or NAME=VALUE with commas between, by the names that the
kubelet's topology and CPU managers have for it.
"""

from __future__ import annotations

import re

from numakin.placement.model.rules import Rules

_SWITCH = "true|false"

ALLOWED = {
    "prefer-closest-numa-nodes": _SWITCH,
    "max-allowable-numa-nodes": r"\d{1,4}",
    "align-by-socket": _SWITCH,
    "distribute-cpus-across-numa": _SWITCH,
    "distribute-cpus-across-cores": _SWITCH,
    "max-exclusive-cpus-per-namespace": r"\d{1,6}",
    "shared-pool": "members|all",
    "span": "numa|cache",
    "within-others": _SWITCH,
}
"""What each may be. The first five are the kubelet's."""

IN_WORDS = ", ".join(
    f"{name}=N" if "d{" in value else name if value == _SWITCH else f"{name}={value}" for name, value in ALLOWED.items()
)


def parsed(text: str) -> dict[str, str] | None:
    """Values by name, a name alone being `true`; None where it is no such list."""
    options: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        value = value or "true"
        if name not in ALLOWED or not re.fullmatch(ALLOWED[name], value):
            return None
        options[name] = value
    return options


def rules(text: str) -> Rules:
    """text: one that can be parsed."""
    options = parsed(text) or {}
    most = options.get("max-exclusive-cpus-per-namespace")
    return Rules(
        prefer_closest_numa_nodes=options.get("prefer-closest-numa-nodes") != "false",
        max_allowable_numa_nodes=int(options.get("max-allowable-numa-nodes", "0")),
        everyone=options.get("shared-pool") == "all",
        within_caches=options.get("span") == "cache",
        distribute_cpus_across_numa=options.get("distribute-cpus-across-numa") == "true",
        distribute_cpus_across_cores=options.get("distribute-cpus-across-cores") == "true",
        align_by_socket=options.get("align-by-socket") == "true",
        max_exclusive_cpus_per_namespace=None if most is None else int(most),
    )


def within_others(text: str) -> bool:
    """Whether a member that another owner confines to several NUMA nodes is narrowed to one of them."""
    return (parsed(text) or {}).get("within-others") == "true"
