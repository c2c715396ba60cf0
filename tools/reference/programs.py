"""Compiles the BPF programs ahead, with bcc: what enforcer/observe/bpf/built/ holds.

python -m tools.reference.programs            write them (root, and an interpreter that has bcc)
python -m tools.reference.programs --check    name those that were made of other sources (needs neither)

Which immediates hold a number that only a node knows (an offset in its kernel's structures, an inode) is found by
compiling with numbers that occur nowhere else, then with each of them changed: what differs depends on it. A last
compilation with other numbers must be what is predicted, to the bit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from enforcer.observe.attribution.identity import SocketIdentity
from enforcer.observe.bpf import built
from enforcer.observe.bpf.loader import INTERPRETERS, LoadRequest
from enforcer.observe.bpf.loader_child import EXITS
from enforcer.observe.collectors import cgroup_skb, fexit, kprobes, socket_tracepoints, unix_sockets, wakeups

BY_NAMESPACE = SocketIdentity(by_namespace=True)
MACHINES = {"x86_64": "x86", "aarch64": "arm64"}
"""What the kernel's sources and bcc call a machine, by `uname -m`."""

REQUESTS: tuple[LoadRequest, ...] = (
    cgroup_skb.request(),
    socket_tracepoints.request(),
    socket_tracepoints.request(identity=BY_NAMESPACE),
    fexit.request(),
    fexit.request(identity=BY_NAMESPACE),
    kprobes.request(),
    unix_sockets.request(),
    wakeups.request(),
)

SIZES = ("EDGES", "SLOTS", "PAIRS")
"""The numbers that say how many entries a map has; they are in no instruction."""

STEP = 8
ADD_IMMEDIATE, LOAD_IMMEDIATE = 0x07, 0x18
"""The instructions that may hold a number. The first extends its sign, so that all of 32 bits take the second."""

LINE = 96
"""Hexadecimal digits: six instructions."""

Values: TypeAlias = Mapping[str, int]


class Unpredictable(Exception):
    """What the compiler made of a number is not an immediate that a loader could write."""


def builds() -> dict[str, tuple[LoadRequest, str]]:
    """By file name: what is built, and for which machine."""
    return {request.build(machine): (request, machine) for request in REQUESTS for machine in reversed(MACHINES)}


def stale() -> list[str]:
    """The names of builds that are missing, superfluous, or of other sources."""
    wanted = builds()
    there = {path.stem for path in built.BUILT.glob("*.json")}
    outdated = []
    for name in there & wanted.keys():
        try:
            built.read(name, wanted[name][0].paths)
        except built.NotBuilt:
            outdated.append(name)
    return sorted([*(there ^ wanted.keys()), *outdated])


def numbers(request: LoadRequest, seed: int) -> dict[str, int]:
    """A value for each number of a request, none like another or the sum of others.

    An inode of a namespace has the highest bit, so that the compiler must make room for 32 bits.
    """
    offsets = built.named(dict.fromkeys(request.offsets, 0))
    values = {
        name: 0x100000 + (position * 0x30000 + 0x11 * position**2) * seed for position, name in enumerate(offsets, 1)
    }
    inodes = {name: 0xF0000000 + 0x1111 * seed for name in request.defines if name not in SIZES}
    return values | inodes


def compiled(request: LoadRequest, machine: str, sets: Sequence[Values]) -> list[dict[str, Any]]:
    """What bcc makes of the request with each set of values. RuntimeError if no interpreter has it."""
    given = {
        "text": "\n".join(path.read_text() for path in request.paths),
        "environment": {"BCC_KERNEL_SOURCE": str(built.SHIM), "ARCH": MACHINES[machine]},
        "values": [{**request.defines, **request.switches, **values} for values in sets],
    }
    child = Path(__file__).with_name("programs_child.py")
    printed = []
    for python in INTERPRETERS:
        done = subprocess.run([python, child], input=json.dumps(given), capture_output=True, text=True, check=False)
        if done.returncode == 0:
            results: list[dict[str, Any]] = json.loads(done.stdout)
            return results
        printed.append(f"{python}: {done.stderr.strip()[-600:]}")
    raise RuntimeError(f"bcc compiles no {request.name}: {'; '.join(printed)}")


def build(request: LoadRequest, machine: str) -> dict[str, Any]:
    """What the file of a request holds. Unpredictable where a number ends up in what can't be written at load."""
    first, other = numbers(request, 1), numbers(request, 2)
    sizes = {name: request.defines[name] + STEP * step for step, name in enumerate(SIZES, 1) if name in request.defines}
    sets = [first, other, *({**first, name: first[name] + STEP} for name in first), {**first, **sizes}]
    base, expected, *changed, resized = compiled(request, machine, sets)
    programs = {}
    for name in request.programs:
        function = _function(base, name)
        program = _program(base["programs"][function], [made["programs"][function] for made in changed], first)
        predicted = {"maps": program["maps"], "code": built.linked({**program, "maps": {}}, other, {}).hex()}
        if predicted != expected["programs"][function]:
            raise Unpredictable(f"{request.name}: {name} with other numbers is another program")
        programs[name] = program
    maps = {name: _map(base["maps"][name], resized["maps"][name], sizes) for name in base["maps"]}
    return {
        "sources": built.digest(request.paths),
        "compiler": base["compiler"],
        "licence": base["licence"],
        "maps": maps,
        "programs": programs,
    }


def _function(made: Mapping[str, Any], name: str) -> str:
    return next(text for text in (name, *(pattern.format(name) for pattern in EXITS)) if text in made["programs"])


def _program(base: Mapping[str, Any], changed: Sequence[Mapping[str, Any]], values: Values) -> dict[str, Any]:
    """The instructions with zero for each number, and the numbers of each place with their factors."""
    places: dict[int, dict[str, int]] = {}
    code = bytearray.fromhex(base["code"])
    for name, other in zip(values, changed, strict=True):
        for place, difference in _differences(bytes(code), bytes.fromhex(other["code"])).items():
            if difference % STEP:
                raise Unpredictable(f"{name} at instruction {place} is not multiplied by a whole number")
            places.setdefault(place, {})[name] = difference // STEP
    for place, terms in places.items():
        at = place * built.INSTRUCTION_SIZE
        if code[at] != LOAD_IMMEDIATE and (code[at] != ADD_IMMEDIATE or "HOST_NAMESPACE" in terms):
            raise Unpredictable(f"{', '.join(terms)} at instruction {place}: {code[at]:#x} takes no such number")
        (value,) = built.IMMEDIATE.unpack_from(code, at + built.IMMEDIATE_AT)
        left = value - sum(factor * values[name] for name, factor in terms.items())
        built.IMMEDIATE.pack_into(code, at + built.IMMEDIATE_AT, left & 0xFFFFFFFF)
    text = code.hex()
    lines = [text[at : at + LINE] for at in range(0, len(text), LINE)]
    return {
        "maps": base["maps"],
        "numbers": {str(place): places[place] for place in sorted(places)},
        "instructions": lines,
    }


def _differences(code: bytes, other: bytes) -> dict[int, int]:
    """How much larger the immediate is, by the number of the instruction."""
    if len(code) != len(other):
        raise Unpredictable("another number makes a program of another length")
    result = {}
    for at in range(0, len(code), built.INSTRUCTION_SIZE):
        middle, end = at + built.IMMEDIATE_AT, at + built.INSTRUCTION_SIZE
        if code[at:middle] != other[at:middle]:
            raise Unpredictable(f"another number makes another instruction of {code[at:end].hex()}")
        difference = int.from_bytes(other[middle:end], "little") - int.from_bytes(code[middle:end], "little")
        if difference:
            result[at // built.INSTRUCTION_SIZE] = difference
    return result


def _map(base: dict[str, Any], resized: Mapping[str, Any], sizes: Values) -> dict[str, Any]:
    named = [name for name, size in sizes.items() if base["entries"] != resized["entries"] == size]
    return {**base, "entries": named[0] if named else base["entries"]}


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        names = stale()
        if names:
            print(f"made of other sources: {', '.join(names)}; make programs", file=sys.stderr)
        return 1 if names else 0
    built.BUILT.mkdir(exist_ok=True)
    for path in built.BUILT.glob("*.json"):
        path.unlink()
    for name, (request, machine) in builds().items():
        text = json.dumps(build(request, machine), indent=1)
        (built.BUILT / f"{name}.json").write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
