"""What the kernel answers the collectors: sock_diag's datagrams, BTF, /proc/net."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from enforcer.observe.attribution.listening import listened
from enforcer.observe.attribution.processes import members
from enforcer.observe.bpf.btf import FUNC, HEADER, MAGIC, MEMBER, STRUCT, TYPE, BadBTF, Types
from enforcer.observe.collectors import diag_wire
from tests.fuzz.target import Target, must
from tests.fuzz.targets.machine import scratch


def diag(data: bytes) -> None:
    try:
        connections, _ = diag_wire.parse(data)
    except diag_wire.DiagError:
        return
    must(all(len(each.local) == len(each.remote) == 16 for each in connections), "addresses have 16 bytes")


def btf(data: bytes) -> None:
    with suppress(BadBTF):
        types = Types(data)
        must(types.offset("sock", "family") >= 0, "an offset is not negative")
        must(types.functions(["send"])["send"] > 0, "0 is no type's id")


def tables(data: bytes) -> None:
    """/proc/PID/net/tcp and cgroup.procs: ports and pids, or OSError."""
    table = _table()
    table.write_bytes(data)
    must(all(port >= 0 for port in listened(table)), "a port is a number")
    (table.parent / "cgroup.procs").write_bytes(data)
    must(all(pid > 0 for pid in members(table.parent)), "a pid is a number")


@cache
def _table() -> Path:
    return scratch() / "tcp"


def _datagrams() -> Iterator[bytes]:
    info = diag_wire.ATTRIBUTE.pack(4 + diag_wire.INFO_SIZE, diag_wire.INFO) + bytes(diag_wire.INFO_SIZE)
    cgroup = diag_wire.ATTRIBUTE.pack(12, diag_wire.CGROUP_ID) + struct.pack("=Q", 77)
    for family in (2, 10):
        body = bytes([family, diag_wire.ESTABLISHED, 0, 0]) + bytes(range(68)) + info + cgroup
        size = diag_wire.NETLINK_HEADER.size + len(body)
        yield diag_wire.NETLINK_HEADER.pack(size, diag_wire.SOCK_DIAG_BY_FAMILY, 2, 1, 0) + body
    yield diag_wire.NETLINK_HEADER.pack(20, diag_wire.NLMSG_DONE, 2, 1, 0) + bytes(4)
    yield diag_wire.NETLINK_HEADER.pack(20, diag_wire.NLMSG_ERROR, 2, 1, 0) + struct.pack("=i", -13)


def _types() -> Iterator[bytes]:
    strings = b"\0sock\0family\0inner\0send\0"
    inner = TYPE.pack(0, STRUCT << 24 | 1, 4) + MEMBER.pack(6, 0, 16)
    sock = TYPE.pack(1, STRUCT << 24 | 1, 8) + MEMBER.pack(0, 1, 64)
    types = inner + sock + TYPE.pack(19, FUNC << 24, 0)
    yield HEADER.pack(MAGIC, 1, 0, HEADER.size, 0, len(types), len(types), len(strings)) + types + strings


def _tables() -> Iterator[bytes]:
    row = b"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n"
    yield b"  sl  local_address rem_address   st\n" + row + row.replace(b"0A 0", b"01 0")
    yield b"1\n22\n333\n"


TARGETS = (
    Target("sock-diag", diag, _datagrams),
    Target("btf", btf, _types),
    Target("proc-tables", tables, _tables),
)
