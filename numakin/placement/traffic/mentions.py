"""Which names a container's environment and arguments may refer to: candidates for Services of the pod's namespace.

A value may be a secret, and which Services there are is known only later. So no text is kept: a candidate is kept as
Python's own string hash, which has 64 bits and is keyed anew in every process, and is compared with the hashes of the
names of Services. What is no Service's name is of no use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

MOST_CHARACTERS = 65_536
"""Of a pod's environment and arguments; what is beyond is not read."""

MOST_MENTIONS = 256
"""Candidates of one pod; further ones do not count."""

_HOST = re.compile(r"(?<![A-Za-z0-9_])[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?(?![A-Za-z0-9_])")
_LONGEST = 63


class Mentions(NamedTuple):
    """names: what may be names of Services (`mention`). over: the limit that something more was left out for, in lower
    case; empty: nothing was.
    """

    names: frozenset[int] = frozenset()
    over: str = ""


NO_MENTIONS = Mentions()


def mention(name: str) -> int:
    """What stands for a Service's name in this process."""
    return hash(name)


def mentions(namespace: str, texts: Iterable[str]) -> Mentions:
    """Of the values and arguments of a pod's containers: `cart`, `cart:7070`, `http://cart/`, `cart.NAMESPACE.svc`,
    and, for a pod behind a headless Service, `cart-0.cart`. Names in other namespaces do not count.
    """
    candidates: set[int] = set()
    left, over = MOST_CHARACTERS, ""
    for text in texts:
        for host in _HOST.findall(text[:left]):
            name = _service(namespace, host)
            if 0 < len(name) <= _LONGEST:
                candidates.add(mention(name))
            if len(candidates) > MOST_MENTIONS:
                candidates.remove(mention(name))
                over = "most_mentions"
        if len(text) > left:
            return Mentions(frozenset(candidates), "most_characters")
        left -= len(text)
    return Mentions(frozenset(candidates), over)


def _service(namespace: str, host: str) -> str:
    """The name that would be a Service's in a host name; empty where it is of another namespace."""
    first, *rest = host.split(".")
    if not rest or rest[0] == namespace:
        return first
    return rest[0] if len(rest) == 1 or rest[1] == namespace else ""
