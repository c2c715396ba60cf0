"""What a pod asks for by annotation, parsed and checked.

Keys follow NRI's own convention: `KEY/container.NAME` beats `KEY/pod` beats `KEY`. The presence of `group.numakin.io` is the opt-in; a bad value
counts as if its key were absent, and is reported as a `Problem`, so that a typing mistake can never fail a container.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

DOMAIN = "numakin.io"
GROUP_KEY = f"group.{DOMAIN}"
LARGEST_SIZE = 10_000
"""The most members that `size.numakin.io` may announce."""

AUTO = "auto"

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_CONTAINER = "container."


class Policy(StrEnum):
    """The kubelet topology manager's policies."""

    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"
    NONE = "none"


class Scope(StrEnum):
    """Whether the pod is aligned as one, or each container by itself."""

    POD = "pod"
    CONTAINER = "container"


class Cpus(StrEnum):
    """Which CPUs: the NUMA node's shared pool, own CPUs, or own physical cores."""

    SHARED = "shared"
    EXCLUSIVE = "exclusive"
    EXCLUSIVE_CORES = "exclusive-cores"


class Memory(StrEnum):
    """How `cpuset.mems` is set: bound while that is safe, always, or never."""

    AUTO = "auto"
    BIND = "bind"
    PREFER = "prefer"


class Move(StrEnum):
    """What may happen to a running container."""

    CPUS = "cpus"
    NEVER = "never"
    CPUS_AND_MEMORY = "cpus-and-memory"


@dataclass(frozen=True, slots=True)
class OptIn:
    """What one container asked for. `group` is NAMESPACE/name, or empty when the group is to be learned from traffic."""

    group: str
    policy: Policy = Policy.BEST_EFFORT
    scope: Scope = Scope.POD
    cpus: Cpus = Cpus.SHARED
    memory: Memory = Memory.AUTO
    move: Move = Move.CPUS
    size: int = 0

    @property
    def auto(self) -> bool:
        return not self.group


@dataclass(frozen=True, slots=True)
class Problem:
    """An annotation that was not taken, worded for an Event on the pod."""

    key: str
    value: str
    allowed: str

    def __str__(self) -> str:
        value = self.value if len(self.value) <= 64 else self.value[:61] + "..."
        return f"annotation {self.key}: {value!r} is not allowed; allowed: {self.allowed}"


class _BadValueError(ValueError):
    """The value is none of the allowed."""


def parse(
    namespace: str, annotations: Mapping[str, str], container: str = ""
) -> tuple[OptIn | None, tuple[Problem, ...]]:
    """What the container (or, without one, the pod as a whole) asks for; None when it has not opted in.

    Problems come in the order of their keys, and cover the keys of this container and of the pod.
    """
    ours = {key: value for key, value in annotations.items() if DOMAIN in key and _family(key)}
    if not ours:
        return None, ()
    problems = [Problem(key, ours[key], "the keys " + ", ".join(_READERS)) for key in sorted(ours) if _unknown(key)]
    values: dict[str, object] = {}
    for base, read in _READERS.items():
        key = _strongest(base, ours, container)
        if key is None:
            continue
        try:
            values[base] = read(ours[key], namespace)
        except _BadValueError as bad:
            problems.append(Problem(key, ours[key], str(bad)))
    problems.sort(key=lambda problem: problem.key)
    if GROUP_KEY not in values:
        return None, tuple(problems)
    fields = {base.partition(".")[0]: value for base, value in values.items()}
    return OptIn(**fields), tuple(problems)  # type: ignore[arg-type]


def opted_in(annotations: Mapping[str, str]) -> bool:
    """Whether any part of the pod may have opted in: the quick check that spares all other pods the parsing."""
    return any(key.startswith(GROUP_KEY) for key in annotations)


def _strongest(base: str, ours: Mapping[str, str], container: str) -> str | None:
    for key in (f"{base}/{_CONTAINER}{container}", f"{base}/pod", base):
        if key in ours:
            return key
    return None


def _family(key: str) -> bool:
    domain = key.partition("/")[0]
    return domain == DOMAIN or domain.endswith("." + DOMAIN)


def _unknown(key: str) -> bool:
    base, slash, suffix = key.partition("/")
    return base not in _READERS or bool(slash and suffix != "pod" and not suffix.startswith(_CONTAINER))


def _group(text: str, namespace: str) -> str:
    if text == AUTO:
        return ""
    if not _NAME.fullmatch(text):
        raise _BadValueError(
            "auto, or a name of at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
        )
    return f"{namespace}/{text}"


def _size(text: str, _namespace: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= LARGEST_SIZE):
        raise _BadValueError(f"an integer from 1 to {LARGEST_SIZE}")
    return int(text)


_Choice = TypeVar("_Choice", bound=StrEnum)


def _one_of(choices: type[_Choice]) -> Callable[[str, str], _Choice]:
    def read(text: str, _namespace: str) -> _Choice:
        try:
            return choices(text)
        except ValueError:
            raise _BadValueError(", ".join(choices)) from None

    return read


_READERS: dict[str, Callable[[str, str], object]] = {
    GROUP_KEY: _group,
    f"policy.{DOMAIN}": _one_of(Policy),
    f"scope.{DOMAIN}": _one_of(Scope),
    f"cpus.{DOMAIN}": _one_of(Cpus),
    f"memory.{DOMAIN}": _one_of(Memory),
    f"move.{DOMAIN}": _one_of(Move),
    f"size.{DOMAIN}": _size,
}
