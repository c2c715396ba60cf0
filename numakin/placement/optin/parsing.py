"""What a pod asks for by annotation, parsed and checked.

Keys follow NRI's own convention: `KEY/container.NAME` beats `KEY/pod` beats `KEY`. The presence of `group.numakin.io`
is the opt-in; a bad value counts as if its key were absent, and is reported as a `AnnotationProblem`, so that a typing
mistake can never fail a container. What Katalyst's annotations ask for is taken where our own keys are silent
(`katalyst`), and what the group's object says where both are.

`parse` looks up the keys that there are and no others, since a container waits for it: its cost does not grow with a
pod's annotations. `problems` reads all of them, and names few.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from heapq import nsmallest
from typing import TypeVar

from numakin.placement.optin import katalyst
from numakin.placement.optin.options import (
    AnnotationProblem,
    BadValue,
    Cpus,
    Defaults,
    Memory,
    Move,
    OptIn,
    Policy,
    Pool,
    Problems,
    Regroup,
    Scope,
    Span,
)

__all__ = [
    "AnnotationProblem",
    "Cpus",
    "Memory",
    "Move",
    "OptIn",
    "Policy",
    "Pool",
    "Problems",
    "Regroup",
    "Scope",
    "Span",
    "bad_values",
    "is_read",
    "names_us",
    "opted_in",
    "parse",
    "problems",
]

DOMAIN = "numakin.io"
GROUP_KEY = f"group.{DOMAIN}"
LARGEST_SIZE = 10_000
"""The most members that `size.numakin.io` may announce."""

MOST_PROBLEMS = 8
"""Annotations of one pod that are named; the rest is counted."""

LONGEST_VALUE = 4096
"""Characters of a value that are read: a longer one is none of the allowed."""

AUTO = "auto"

NOTHING = Defaults()

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_CONTAINER = "container."


def parse(
    namespace: str,
    annotations: Mapping[str, str],
    container: str = "",
    defaults: Callable[[str], Defaults] = lambda _group: NOTHING,
) -> OptIn | None:
    """What the container (or, without one, the pod as a whole) asks for; None when it has not opted in.

    defaults: what is said for the members of a group, NAMESPACE/name, or empty where that is to be learned.
    """
    if not any(key in annotations for key in _strongest_first(GROUP_KEY, container)):
        return None
    values, _ = _read(namespace, annotations, container)
    if values is None:
        return None
    return OptIn(**{**defaults(str(values["group"])).fields_set, **values})  # type: ignore[arg-type]


def problems(namespace: str, annotations: Mapping[str, str], containers: Iterable[str] = ("",)) -> Problems:
    """What is not taken of the annotations of a pod with these containers, in the order of the keys; those of known
    keys first where there are too many.
    """
    bad = dict.fromkeys(problem for container in containers for problem in _read(namespace, annotations, container)[1])
    unknown = [key for key in annotations if DOMAIN in key and _family(key) and _unknown(key)]
    allowed = "the keys " + ", ".join(_READERS)
    named = [*bad][:MOST_PROBLEMS]
    named += [
        AnnotationProblem(key, annotations[key], allowed) for key in nsmallest(MOST_PROBLEMS - len(named), unknown)
    ]
    return Problems(tuple(sorted(named, key=lambda problem: problem.key)), len(bad) + len(unknown) - len(named))


def bad_values(namespace: str, annotations: Mapping[str, str], container: str) -> tuple[AnnotationProblem, ...]:
    """The part of `problems` whose cost does not grow with the annotations: the known keys."""
    return _read(namespace, annotations, container)[1]


def _read(
    namespace: str, annotations: Mapping[str, str], container: str
) -> tuple[Mapping[str, object] | None, tuple[AnnotationProblem, ...]]:
    own, theirs = (
        tuple((key, annotations[key][:LONGEST_VALUE]) for key in keys if key in annotations)
        for keys in (_known(container), katalyst.KEYS)
    )
    return _parsed(namespace, own, theirs, container)


@lru_cache(maxsize=64)
def _parsed(
    namespace: str, own: tuple[tuple[str, str], ...], theirs: tuple[tuple[str, str], ...], container: str
) -> tuple[Mapping[str, object] | None, tuple[AnnotationProblem, ...]]:
    """As fields of an OptIn, and the bad values. own, theirs: our own and Katalyst's annotations. The replicas of a
    workload have the same.
    """
    ours = dict(own)
    problems = []
    values: dict[str, object] = {}
    for base, read in _READERS.items():
        for key in _strongest_first(base, container):
            if key not in ours:
                continue
            try:
                name, value = base.partition(".")[0], read(ours[key], namespace)
            except BadValue as bad:
                problems.append(AnnotationProblem(key, ours[key], str(bad)))
                continue
            if name == "cpus" and name not in values and key.endswith(f"/{_CONTAINER}{container}"):
                values["cpus_named"] = True
            values.setdefault(name, value)
    if "group" in values:
        externally_managed, more = katalyst.read(dict(theirs))
        if "cpus" in values:
            externally_managed.pop("pool", None)
        values = {**externally_managed, **values}
        problems += more
    return (values if "group" in values else None), tuple(problems)


def opted_in(annotations: Mapping[str, str]) -> bool:
    """Whether any part of the pod may have opted in: the quick check that spares all other pods the parsing."""
    return any(key.startswith(GROUP_KEY) for key in annotations)


def names_us(annotations: Mapping[str, str]) -> bool:
    """Whether any is of our domain: somebody means numakin, though perhaps no part of the pod has opted in."""
    return any(DOMAIN in key and _family(key) for key in annotations)


def is_read(key: str) -> bool:
    """Whether an annotation with this key may be one that is read here: what names our domain, and Katalyst's."""
    return DOMAIN in key or key in katalyst.KEYS


@lru_cache(maxsize=256)
def _known(container: str) -> tuple[str, ...]:
    return tuple(key for base in _READERS for key in _strongest_first(base, container))


@lru_cache(maxsize=1024)
def _strongest_first(base: str, container: str) -> tuple[str, ...]:
    return (*((f"{base}/{_CONTAINER}{container}",) if container else ()), f"{base}/pod", base)


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
    f"span.{DOMAIN}": _one_of(Span),
    f"regroup.{DOMAIN}": _one_of(Regroup),
}
