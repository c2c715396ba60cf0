"""What a pod asks for by annotation, parsed and checked.

Keys follow NRI's own convention: `KEY/container.NAME` beats `KEY/pod` beats `KEY`. The presence of `group.numakin.io`
is the opt-in; a bad value counts as if its key were absent, and is reported as a `Problem`, so that a typing mistake
can never fail a container. What Katalyst's annotations ask for is taken where our own keys are silent (`katalyst`), and
what the group's object says where both are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from placement import katalyst
from placement.wishes import BadValue, Cpus, Defaults, Memory, Move, OptIn, Policy, Pool, Problem, Scope

__all__ = ["Cpus", "Memory", "Move", "OptIn", "Policy", "Pool", "Problem", "Scope", "opted_in", "parse"]

DOMAIN = "numakin.io"
GROUP_KEY = f"group.{DOMAIN}"
LARGEST_SIZE = 10_000
"""The most members that `size.numakin.io` may announce."""

AUTO = "auto"

NOTHING = Defaults()

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_CONTAINER = "container."


def parse(
    namespace: str,
    annotations: Mapping[str, str],
    container: str = "",
    defaults: Callable[[str], Defaults] = lambda _group: NOTHING,
) -> tuple[OptIn | None, tuple[Problem, ...]]:
    """What the container (or, without one, the pod as a whole) asks for; None when it has not opted in.

    defaults: what is said for the members of a group, NAMESPACE/name, or empty where that is to be learned. Problems
    come in the order of their keys, and cover the keys of this container and of the pod.
    """
    ours = tuple((key, value) for key, value in annotations.items() if DOMAIN in key and _family(key))
    if not ours:
        return None, ()
    foreign = tuple((key, annotations[key]) for key in katalyst.KEYS if key in annotations)
    values, problems = _parsed(namespace, ours, foreign, container)
    if values is None:
        return None, problems
    return OptIn(**{**defaults(str(values["group"])).said, **values}), problems  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def _parsed(
    namespace: str, told: tuple[tuple[str, str], ...], theirs: tuple[tuple[str, str], ...], container: str
) -> tuple[Mapping[str, object] | None, tuple[Problem, ...]]:
    """As fields of an OptIn. told, theirs: our own and Katalyst's annotations. The replicas of a workload have the
    same.
    """
    ours = dict(told)
    allowed = "the keys " + ", ".join(_READERS)
    problems = [Problem(key, value, allowed) for key, value in ours.items() if _unknown(key)]
    values: dict[str, object] = {}
    for base, read in _READERS.items():
        for key in _strongest_first(base, ours, container):
            try:
                values.setdefault(base.partition(".")[0], read(ours[key], namespace))
            except BadValue as bad:
                problems.append(Problem(key, ours[key], str(bad)))
    if "group" in values:
        foreign, more = katalyst.read(dict(theirs))
        if "cpus" in values:
            foreign.pop("pool", None)
        values = {**foreign, **values}
        problems += more
    problems.sort(key=lambda problem: problem.key)
    return (values if "group" in values else None), tuple(problems)


def opted_in(annotations: Mapping[str, str]) -> bool:
    """Whether any part of the pod may have opted in: the quick check that spares all other pods the parsing."""
    return any(key.startswith(GROUP_KEY) for key in annotations)


def _strongest_first(base: str, ours: Mapping[str, str], container: str) -> Iterator[str]:
    for key in (f"{base}/{_CONTAINER}{container}" if container else "", f"{base}/pod", base):
        if key in ours:
            yield key


def _family(key: str) -> bool:
    domain = key.partition("/")[0]
    return domain == DOMAIN or domain.endswith("." + DOMAIN)


def _unknown(key: str) -> bool:
    base, slash, suffix = key.partition("/")
    known_suffix = suffix == "pod" or (suffix.startswith(_CONTAINER) and suffix != _CONTAINER)
    return base not in _READERS or bool(slash and not known_suffix)


def _group(text: str, namespace: str) -> str:
    if text == AUTO:
        return ""
    if not _NAME.fullmatch(text):
        raise BadValue(
            "auto, or a name of at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
        )
    return f"{namespace}/{text}"


def _size(text: str, _namespace: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= LARGEST_SIZE):
        raise BadValue(f"an integer from 1 to {LARGEST_SIZE}")
    return int(text)


_Choice = TypeVar("_Choice", bound=StrEnum)


def _one_of(choices: type[_Choice]) -> Callable[[str, str], _Choice]:
    def read(text: str, _namespace: str) -> _Choice:
        try:
            return choices(text)
        except ValueError:
            raise BadValue(", ".join(choices)) from None

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
