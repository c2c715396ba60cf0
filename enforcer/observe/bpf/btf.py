"""Where the kernel keeps what: byte offsets of structure members, and ids of functions, from /sys/kernel/btf/vmlinux.

Standard library alone and no type of this package: the loader's child runs it under whichever interpreter has bcc.
The format is described in Documentation/bpf/btf.rst of the kernel.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path

VMLINUX = Path("/sys/kernel/btf/vmlinux")
MAGIC = 0xEB9F
STRUCT, UNION, FUNC = 4, 5, 12
HEADER = struct.Struct("=HBBIIIII")
TYPE = struct.Struct("=III")
MEMBER = struct.Struct("=III")

# Bytes after the 12 of a type, by kind: (fixed, for each of vlen).
EXTRA = {
    1: (4, 0),  # INT
    2: (0, 0),  # PTR
    3: (12, 0),  # ARRAY
    STRUCT: (0, 12),
    UNION: (0, 12),
    6: (0, 8),  # ENUM
    7: (0, 0),  # FWD
    8: (0, 0),  # TYPEDEF
    9: (0, 0),  # VOLATILE
    10: (0, 0),  # CONST
    11: (0, 0),  # RESTRICT
    FUNC: (0, 0),
    13: (0, 8),  # FUNC_PROTO
    14: (4, 0),  # VAR
    15: (0, 12),  # DATASEC
    16: (0, 0),  # FLOAT
    17: (4, 0),  # DECL_TAG
    18: (0, 0),  # TYPE_TAG
    19: (0, 12),  # ENUM64
}


BROKEN = (struct.error, IndexError, ValueError, RecursionError)
"""What reading beyond the bytes raises, or a structure that is inside of itself."""


class BadBTF(Exception):
    """The bytes are not BTF as this reader knows it, or lack a structure or member that was asked for."""


class Types:
    """An index over BTF bytes."""

    def __init__(self, data: bytes) -> None:
        try:
            magic, _version, _flags, header, types, types_size, strings, _ = HEADER.unpack_from(data)
        except struct.error as error:
            raise BadBTF("shorter than a BTF header") from error
        if magic != MAGIC:
            raise BadBTF(f"magic {magic:#x} instead of {MAGIC:#x}")
        self._data = data
        self._strings = header + strings
        self._positions = [0]
        self._structs: dict[bytes, int] = {}
        try:
            self._index(header + types, header + types + types_size)
        except BROKEN as error:
            raise BadBTF(f"cut short, or at odds with itself: {error}") from error

    def _index(self, position: int, end: int) -> None:
        unpack, data, strings = TYPE.unpack_from, self._data, self._strings
        while position < end:
            name, info, _ = unpack(data, position)
            self._positions.append(position)
            kind, members = info >> 24 & 0x1F, info & 0xFFFF
            if kind not in EXTRA:
                raise BadBTF(f"unknown kind {kind}")
            if kind == STRUCT and name:
                start = strings + name
                self._structs.setdefault(data[start : data.index(b"\0", start)], position)
            fixed, each = EXTRA[kind]
            position += TYPE.size + fixed + each * members

    def offset(self, structure: str, member: str) -> int:
        """Byte offset of `member` in `struct structure`, through anonymous structures and unions.

        BadBTF names what is missing.
        """
        position = self._structs.get(structure.encode())
        if position is None:
            raise BadBTF(f"no struct {structure}")
        try:
            offset = self._find(position, member.encode())
        except BROKEN as error:
            raise BadBTF(f"struct {structure} is cut short, or at odds with itself: {error}") from error
        if offset is None:
            raise BadBTF(f"no member {structure}.{member}")
        return offset

    def _find(self, position: int, member: bytes) -> int | None:
        _, info, _ = TYPE.unpack_from(self._data, position)
        bitfields = info >> 31
        for i in range(info & 0xFFFF):
            name, type_id, bits = MEMBER.unpack_from(self._data, position + TYPE.size + MEMBER.size * i)
            base: int = (bits & 0xFFFFFF if bitfields else bits) // 8
            if name:
                if self._name(name) == member:
                    return base
                continue
            inner = self._positions[type_id]
            if TYPE.unpack_from(self._data, inner)[1] >> 24 & 0x1F in (STRUCT, UNION):
                offset = self._find(inner, member)
                if offset is not None:
                    return base + offset
        return None

    def functions(self, wanted: Collection[str]) -> dict[str, int]:
        """The type ids of kernel functions. BadBTF names what is missing."""
        names = {name.encode() for name in wanted}
        ids: dict[str, int] = {}
        try:
            for number, position in enumerate(self._positions[1:], 1):
                name, info, _ = TYPE.unpack_from(self._data, position)
                if info >> 24 & 0x1F == FUNC and (text := self._name(name)) in names:
                    ids.setdefault(text.decode(), number)
        except BROKEN as error:
            raise BadBTF(f"cut short, or at odds with itself: {error}") from error
        for name in wanted:
            if name not in ids:
                raise BadBTF(f"no function {name}")
        return ids

    def _name(self, offset: int) -> bytes:
        start = self._strings + offset
        return self._data[start : self._data.index(b"\0", start)]


def offsets(wanted: Sequence[str], path: Path = VMLINUX) -> dict[str, int]:
    """{"struct.member": bytes} for each wanted "struct.member"."""
    if not wanted:
        return {}
    types = _types(path)
    return {name: types.offset(*name.split(".")) for name in wanted}


def functions(wanted: Collection[str]) -> dict[str, int]:
    """The type ids of the wanted kernel functions, by name."""
    return _types(VMLINUX).functions(wanted) if wanted else {}


@lru_cache(maxsize=None)  # noqa: UP033 - Python 3.8 may be the interpreter that has bcc
def _types(path: Path) -> Types:
    """Kept: those who ask are processes that end soon."""
    try:
        return Types(path.read_bytes())
    except OSError as error:
        raise BadBTF(f"{path}: {error.strerror}") from error
