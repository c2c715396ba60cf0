"""Programs that were compiled ahead, loaded by bpf(2) alone: no compiler is needed on the node.

`built/NAME.json` holds what bcc made of the C sources (python -m tools.reference.programs writes it): the maps, and for
each program its instructions, where they refer to a map, and where they hold a number that is known on the node alone,
as a byte offset of this kernel's structures. The instructions are the same on every little-endian machine but for
kprobes, which read registers.
"""

from __future__ import annotations

import hashlib
import json
import resource
import struct
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from enforcer.observe.bpf import btf, syscall

HERE = Path(__file__).parent
SHIM = HERE / "shim"
BUILT = HERE / "built"

PROGRAM_TYPES = {"kprobe": 2, "cgroup_skb": 8, "raw_tracepoint": 17, "tracing": 26}
"""enum bpf_prog_type of include/uapi/linux/bpf.h."""

TRACE_FEXIT = 25
"""enum bpf_attach_type."""

INSTRUCTION_SIZE, IMMEDIATE_AT = 8, 4
IMMEDIATE = struct.Struct("<I")
REGISTERS_AT = 1
MAP_DESCRIPTOR = 1
"""BPF_PSEUDO_MAP_FD, in the upper half of the byte of registers: the immediate is a map's descriptor."""


class NotBuilt(Exception):
    """There are no instructions for this machine, these sources or these values; the text says why."""


def digest(sources: Iterable[Path]) -> str:
    """SHA-256 of what is compiled: the sources, and the headers that stand in for the kernel's."""
    headers = sorted(path for path in SHIM.rglob("*") if path.is_file())
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in (*sources, *headers))).hexdigest()


def load(request: Mapping[str, Any]) -> list[int]:
    """Descriptors of the request's maps, then of its programs.

    NotBuilt, BadBTF, or OSError with the verifier's last words.
    """
    # Before Linux 5.11 the memory of maps counts against this limit. Where it can't be raised it may still suffice.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    build = read(request["build"], [Path(path) for path in request["sources"]])
    numbers = {**request["defines"], **named(btf.offsets(request["offsets"]))}
    functions = btf.functions([name for name, kind in request["programs"].items() if kind == "tracing"])
    maps = {name: created(name, definition, numbers) for name, definition in build["maps"].items()}
    programs = []
    for name, kind in request["programs"].items():
        program = build["programs"][name]
        instructions = linked(program, numbers, maps)
        descriptor = syscall.load_program(
            name,
            instructions,
            kind=PROGRAM_TYPES[kind],
            licence=build["licence"],
            attach_type=TRACE_FEXIT if kind == "tracing" else 0,
            function=functions.get(name, 0),
        )
        programs.append(descriptor)
    return [maps[name] for name in request["maps"]] + programs


def read(name: str, sources: Iterable[Path]) -> dict[str, Any]:
    """What was built under this name. NotBuilt if there is nothing, or if the sources have changed since."""
    if sys.byteorder != "little":
        raise NotBuilt("the programs are built for little-endian machines")
    try:
        build: dict[str, Any] = json.loads((BUILT / f"{name}.json").read_text())
    except FileNotFoundError as error:
        raise NotBuilt(f"no {name} is built for this machine") from error
    if build["sources"] != digest(sources):
        raise NotBuilt(f"{name} was built of other sources")
    return build


def named(offsets: Mapping[str, int]) -> dict[str, int]:
    """The names that offsets have in the programs: OFFSET_struct_member for struct.member."""
    return {f"OFFSET_{name.replace('.', '_')}": value for name, value in offsets.items()}


def created(name: str, definition: Mapping[str, Any], numbers: Mapping[str, int]) -> int:
    """A descriptor of a map. Its number of entries is a number, or the name of one."""
    entries = definition["entries"]
    return syscall.create_map(
        name,
        kind=definition["type"],
        key_size=definition["key"],
        value_size=definition["value"],
        entries=numbers[entries] if isinstance(entries, str) else entries,
        flags=definition["flags"],
    )


def linked(program: Mapping[str, Any], numbers: Mapping[str, int], maps: Mapping[str, int]) -> bytes:
    """The instructions with this node's numbers and map descriptors in their immediates.

    A place of numbers holds the sum of some, each with a factor, and of what is in the immediate already.
    """
    code = bytearray.fromhex("".join(program["instructions"]))
    for place, terms in program["numbers"].items():
        at = int(place) * INSTRUCTION_SIZE + IMMEDIATE_AT
        (base,) = IMMEDIATE.unpack_from(code, at)
        total = base + sum(factor * numbers[name] for name, factor in terms.items())
        IMMEDIATE.pack_into(code, at, total & 0xFFFFFFFF)
    for place, name in program["maps"].items():
        at = int(place) * INSTRUCTION_SIZE
        code[at + REGISTERS_AT] |= MAP_DESCRIPTOR << 4
        IMMEDIATE.pack_into(code, at + IMMEDIATE_AT, maps[name])
    return bytes(code)
