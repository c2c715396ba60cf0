"""The bpf(2) system call: making and reading maps, loading and attaching programs.

Every attachment made here is a descriptor: closing it, or the death of the process, detaches. Nothing is ever pinned.
Errors of the kernel are OSError with the command's name.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum
from pathlib import Path

SYSCALL = {"x86_64": 321, "aarch64": 280}
"""__NR_bpf by machine."""

CGROUP_INET_INGRESS = 0
CGROUP_INET_EGRESS = 1

NAME_MAX = 15
"""BPF_OBJ_NAME_LEN without its zero."""

LOG_BYTES = 1 << 20
LOG_KEPT = 600
"""Size of the buffer for what the verifier prints, and how many of its last characters are shown."""

BATCH_BYTES = 1 << 20
"""Size of the buffer that values are read into; decides how many keys one call reads."""


class Command(IntEnum):
    """enum bpf_cmd of include/uapi/linux/bpf.h."""

    MAP_CREATE = 0
    MAP_LOOKUP_ELEM = 1
    MAP_UPDATE_ELEM = 2
    MAP_DELETE_ELEM = 3
    PROG_LOAD = 5
    RAW_TRACEPOINT_OPEN = 17
    MAP_LOOKUP_BATCH = 24
    LINK_CREATE = 28


_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def call(command: Command, attributes: bytes) -> int:
    """bpf(command, attributes), for commands that write nothing back into `attributes`."""
    return _call(command, ctypes.create_string_buffer(attributes, len(attributes)))


def _call(command: Command, buffer: ctypes.Array[ctypes.c_char]) -> int:
    arguments = ctypes.c_long(command), ctypes.byref(buffer), ctypes.c_long(len(buffer))
    return system_call(SYSCALL, f"bpf {command.name}", *arguments)


def system_call(numbers: Mapping[str, int], what: str, *arguments: object) -> int:
    """Any other, too. numbers: its number by machine. OSError, with what was called."""
    result: int = _libc.syscall(ctypes.c_long(numbers[platform.machine()]), *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def create_map(name: str, *, kind: int, key_size: int, value_size: int, entries: int, flags: int) -> int:
    """A descriptor of a new map; `kind` is of enum bpf_map_type."""
    attributes = struct.pack("=IIIIIII", kind, key_size, value_size, entries, flags, 0, 0)
    return call(Command.MAP_CREATE, attributes + _name(name))


def load_program(name: str, instructions: bytes, *, kind: int, licence: str, attach_type: int, function: int) -> int:
    """A descriptor of a program; `kind` is of enum bpf_prog_type, `attach_type` of enum bpf_attach_type or 0.

    function: BTF id of the kernel function that a tracing program is for, else 0. The verifier explains its refusal in
    the error's text: it is asked a second time for that, since its explanation costs more than its work.
    """
    code = ctypes.create_string_buffer(instructions, len(instructions))
    licensed = ctypes.create_string_buffer(licence.encode())

    def load(log: ctypes.Array[ctypes.c_char] | None) -> int:
        logged = (1, len(log), ctypes.addressof(log)) if log is not None else (0, 0, 0)
        head = struct.pack("=IIQQ", kind, len(instructions) // 8, ctypes.addressof(code), ctypes.addressof(licensed))
        target = struct.pack("=IIIIQIIQII", 0, attach_type, 0, 0, 0, 0, 0, 0, 0, function)
        return call(Command.PROG_LOAD, head + struct.pack("=IIQII", *logged, 0, 0) + _name(name) + target)

    try:
        return load(None)
    except OSError as refusal:
        if refusal.errno == errno.EPERM:
            raise
        log = ctypes.create_string_buffer(LOG_BYTES)
        try:
            return load(log)
        except OSError:
            words = " ".join(log.value.decode(errors="replace").split())[-LOG_KEPT:]
            raise OSError(refusal.errno, f"{refusal.strerror}: {name}: {words}") from refusal


def _name(name: str) -> bytes:
    return name.encode()[:NAME_MAX].ljust(NAME_MAX + 1, b"\0")


def attach_cgroup(program: int, cgroup: int, kind: int) -> int:
    """A link that runs `program` beside whatever else is attached to the cgroup directory `cgroup`. Linux 5.7."""
    return call(Command.LINK_CREATE, struct.pack("=IIII", program, cgroup, kind, 0) + bytes(48))


def attach_raw_tracepoint(program: int, name: str | None) -> int:
    """Attach to the raw tracepoint `name`; None for a program that knows its own target, as fexit does."""
    text = ctypes.create_string_buffer(name.encode()) if name else None
    try:
        return call(Command.RAW_TRACEPOINT_OPEN, struct.pack("=QII", ctypes.addressof(text) if text else 0, program, 0))
    except FileNotFoundError as error:
        missing = f"this kernel has no tracepoint {name}" if name else "its programs attach once alone in this kernel"
        raise FileNotFoundError(error.errno, missing) from error


def possible_cpus() -> int:
    """How many values a per-CPU element has: one for each CPU that could ever be plugged in."""
    ranges = Path("/sys/devices/system/cpu/possible").read_text().strip().split(",")
    ends = [[int(end) for end in entry.split("-")] for entry in ranges]
    return sum(end[-1] - end[0] + 1 for end in ends)


class Map:
    """A map with fixed key and value sizes. A value of a per-CPU map is those of all CPUs, one after another."""

    def __init__(self, fd: int, key_size: int, value_size: int, *, cpus: int = 1) -> None:
        self.fd = fd
        self._key_size = key_size
        self._value_size = (value_size + 7 & ~7) * cpus if cpus > 1 else value_size
        self._chunk = max(64, BATCH_BYTES // self._value_size)

    def lookup(self, key: bytes) -> bytes:
        """KeyError if there is no such key."""
        buffer = ctypes.create_string_buffer(self._value_size)
        try:
            self._element(Command.MAP_LOOKUP_ELEM, key, ctypes.addressof(buffer))
        except FileNotFoundError as error:
            raise KeyError(key) from error
        return buffer.raw

    def update(self, key: bytes, value: bytes) -> None:
        buffer = ctypes.create_string_buffer(value, self._value_size)
        self._element(Command.MAP_UPDATE_ELEM, key, ctypes.addressof(buffer))

    def delete(self, key: bytes) -> None:
        """A key that is gone already is no error."""
        try:
            self._element(Command.MAP_DELETE_ELEM, key, 0)
        except FileNotFoundError:
            return

    def _element(self, command: Command, key: bytes, value: int) -> None:
        buffer = ctypes.create_string_buffer(key, self._key_size)
        call(command, struct.pack("=IxxxxQQQ", self.fd, ctypes.addressof(buffer), value, 0))

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys and values of a hash map, read in batches. Linux 5.6.

        A bucket fuller than the buffer is ENOSPC: the buffer is doubled and that bucket asked for again.
        """
        position = ctypes.create_string_buffer(max(8, self._key_size))
        started = False
        while True:
            keys = ctypes.create_string_buffer(self._key_size * self._chunk)
            values = ctypes.create_string_buffer(self._value_size * self._chunk)
            following = ctypes.create_string_buffer(len(position))
            attributes = ctypes.create_string_buffer(
                struct.pack(
                    "=QQQQIIQQ",
                    ctypes.addressof(position) if started else 0,
                    ctypes.addressof(following),
                    ctypes.addressof(keys),
                    ctypes.addressof(values),
                    self._chunk,
                    self.fd,
                    0,
                    0,
                ),
                56,
            )
            last = False
            try:
                _call(Command.MAP_LOOKUP_BATCH, attributes)
            except FileNotFoundError:
                last = True
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                self._chunk *= 2
                continue
            count = struct.unpack_from("=I", attributes, 32)[0]
            yield from self._unpack(keys.raw, values.raw, count)
            if last:
                return
            position, started = following, True

    def _unpack(self, keys: bytes, values: bytes, count: int) -> Iterator[tuple[bytes, bytes]]:
        key, value = self._key_size, self._value_size
        for i in range(count):
            yield keys[i * key : (i + 1) * key], values[i * value : (i + 1) * value]
