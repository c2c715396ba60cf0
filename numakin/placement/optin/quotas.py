"""What an operator lets one namespace's pods ask for: a tenant who may annotate pods could else take a machine.

What is over a quota is placed as if it had not been asked for, and said by name in the decision's reasons. A value that
can't be read is taken for the least: an operator who wrote one wanted a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from numakin.placement.optin.options import Cpus, Memory, Move, OptIn, Policy, Pool, Scope
from numakin.placement.optin.parsing import DOMAIN, LARGEST_SIZE

EXCLUSIVE_KEY = f"{DOMAIN}/max-exclusive-cpus"
SIZE_KEY = f"{DOMAIN}/max-group-size"
KEYS_KEY = f"{DOMAIN}/allowed-keys"
"""Annotations of a Namespace object."""

MOST_CPUS = 1_000_000
"""The largest limit that is taken: over any node's CPUs."""

NO_KEYS = "none"

_DEFAULTS: Mapping[str, object] = {
    "policy": Policy.BEST_EFFORT,
    "scope": Scope.POD,
    "cpus": Cpus.SHARED,
    "memory": Memory.AUTO,
    "move": Move.CPUS,
    "span": None,
    "size": 0,
}
"""What a key that is not allowed counts as: the fields of OptIn by the names of their keys."""

KEYS = tuple(_DEFAULTS)
"""The keys that a namespace may be restricted to; `group` is always allowed, since it takes nothing from others."""


@dataclass(frozen=True, slots=True)
class Quota:
    """Of one namespace. None: no limit. exclusive_cpus: CPUs that its containers may have exclusively on one node.
    group_size: the most that `size.numakin.io` may announce. keys: of `KEYS`, those that its pods may use.
    """

    exclusive_cpus: int | None = None
    group_size: int | None = None
    keys: frozenset[str] | None = None

    def __str__(self) -> str:
        """What is limited, for people."""
        keys = ", ".join(key for key in KEYS if key in self.keys) or NO_KEYS if self.keys is not None else ""
        limits = (
            ("exclusive CPUs on a node", self.exclusive_cpus),
            ("members in size.numakin.io", self.group_size),
        )
        parts = [f"{limit} {what}" for what, limit in limits if limit is not None]
        return "; ".join([*parts, *([f"keys {keys}"] if keys else [])]) or "no limit"

    def allowed(self, opt_in: OptIn) -> tuple[OptIn, tuple[str, ...]]:
        """What counts of what a container asks for, and in words what does not. Exclusive CPUs are left to `decide`,
        which knows how many the namespace has; NUMA nodes of one's own are refused where those are limited.
        """
        taken, refused = opt_in, []
        for key, default in _DEFAULTS.items() if self.keys is not None else ():
            if key not in (self.keys or ()) and getattr(taken, key) != default:
                refused.append(f"{key}.{DOMAIN} is not among the keys that its namespace may use")
                taken = replace(taken, **{key: default})  # type: ignore[arg-type]
        if self.group_size is not None and taken.size > self.group_size:
            refused.append(f"size.{DOMAIN} {taken.size} is over {self.group_size}, its namespace's largest")
            taken = replace(taken, size=0)
        chooses = self.keys is None or "cpus" in self.keys
        if taken.alone and (self.exclusive_cpus is not None or not chooses):
            whose = "whose exclusive CPUs are limited" if chooses else "that may not choose its CPUs"
            refused.append(f"NUMA nodes of its own are not for a namespace {whose}")
            taken = replace(taken, alone=False)
        if taken.pool is Pool.RESERVED and not chooses:
            refused.append("the reserved CPUs are not for a namespace that may not choose its CPUs")
            taken = replace(taken, pool=Pool.SHARED)
        return taken, tuple(refused)


UNLIMITED = Quota()


def read(annotations: Mapping[str, str]) -> tuple[Quota, tuple[str, ...]]:
    """A Namespace's quota by its annotations, and for each that can't be read its name, value and what is allowed."""
    values: dict[str, object] = {}
    problems = []
    for key, (field, reader, allowed, least) in _READERS.items():
        if key not in annotations:
            continue
        try:
            values[field] = reader(annotations[key])
        except ValueError:
            values[field] = least
            problems.append(
                f"annotation {key}: {annotations[key][:64]!r} is not allowed, and counts as the least; "
                f"allowed: {allowed}"
            )
    return Quota(**values), tuple(problems)  # type: ignore[arg-type]


def _whole(most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most):
            raise ValueError(text)
        return int(text)

    return number


def _keys(text: str) -> frozenset[str]:
    keys = frozenset(part.strip() for part in text.split(",")) if text != NO_KEYS else frozenset()
    if not keys <= frozenset(KEYS):
        raise ValueError(text)
    return keys


_READERS: Mapping[str, tuple[str, Callable[[str], object], str, object]] = {
    EXCLUSIVE_KEY: ("exclusive_cpus", _whole(MOST_CPUS), f"a whole number up to {MOST_CPUS}", 0),
    SIZE_KEY: ("group_size", _whole(LARGEST_SIZE), f"a whole number up to {LARGEST_SIZE}", 0),
    KEYS_KEY: ("keys", _keys, f"{NO_KEYS}, or some of {', '.join(KEYS)} with commas between", frozenset[str]()),
}
