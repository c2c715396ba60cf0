"""JSON that is nested deeper than can be decoded: other projects' kinds may hold whatever their authors like, and the
API server takes thousands of levels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_LEVELS = 200
"""Brackets within each other that are read; what is deeper counts as null. Nothing of ours has more than twenty."""

_TOKENS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]', re.DOTALL)
"""Texts as a whole, as they may hold brackets."""


def shallow(text: bytes) -> bytes:
    """With null for each value that is deeper."""
    return b"".join(_kept(text))


def _kept(text: bytes) -> Iterator[bytes]:
    depth = begin = 0
    for token in _TOKENS.finditer(text):
        if token[0] in (b"{", b"["):
            depth += 1
            if depth == MOST_LEVELS + 1:
                yield text[begin : token.start()]
                yield b"null"
        elif token[0] in (b"}", b"]"):
            if depth == MOST_LEVELS + 1:
                begin = token.end()
            depth -= 1
    if depth <= MOST_LEVELS:
        yield text[begin:]
