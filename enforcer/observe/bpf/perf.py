"""The perf_event_open(2) system call, as far as kprobes need it. Linux 4.17."""

import ctypes
import errno
import fcntl
import os
import struct
from pathlib import Path

from enforcer.observe.bpf.syscall import system_call

SYSCALL = {"x86_64": 298, "aarch64": 241}
"""__NR_perf_event_open by machine."""

KPROBE = Path("/sys/bus/event_source/devices/kprobe")
ATTR_SIZE = 112
"""PERF_ATTR_SIZE_VER5 of include/uapi/linux/perf_event.h."""

CLOSE_ON_EXEC = 8
SET_BPF = 0x40042408
ENABLE = 0x2400


def attach_kprobe(program: int, function: str, *, at_return: bool) -> int:
    """A descriptor that is the probe: closing it removes it. OSError if there are no kprobes or no such function."""
    try:
        kind = int((KPROBE / "type").read_text())
    except FileNotFoundError as error:
        raise OSError(errno.ENOENT, "the kernel has no kprobes") from error
    name = ctypes.create_string_buffer(function.encode())
    # type, size, config (bit 0: at return), sample_period, sample_type, read_format, flags, wakeup_events, bp_type,
    # config1: the function's name, config2: the offset in it.
    attributes = struct.pack(
        "=IIQQQQQIIQQ", kind, ATTR_SIZE, int(at_return), 1, 0, 0, 0, 1, 0, ctypes.addressof(name), 0
    )
    descriptor = _open(attributes, function)
    try:
        fcntl.ioctl(descriptor, SET_BPF, program)
        fcntl.ioctl(descriptor, ENABLE, 0)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _open(attributes: bytes, function: str) -> int:
    """On CPU 0 and for every process: a probe's program runs on all CPUs whatever CPU its event is bound to."""
    buffer = ctypes.create_string_buffer(attributes, ATTR_SIZE)
    process, cpu, group, flags = map(ctypes.c_long, (-1, 0, -1, CLOSE_ON_EXEC))
    return system_call(SYSCALL, f"kprobe on {function}", ctypes.byref(buffer), process, cpu, group, flags)
