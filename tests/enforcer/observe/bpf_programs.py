"""Which BPF programs are loaded on this machine: what `bpftool prog` lists."""

import ctypes
import os
import platform
import struct

from enforcer.observe.bpf.syscall import SYSCALL

# enum bpf_cmd and struct bpf_prog_info of include/uapi/linux/bpf.h.
PROG_GET_NEXT_ID, PROG_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD = 11, 13, 15
INFO_SIZE, NAME_AT, NAME_SIZE = 232, 64, 16

_libc = ctypes.CDLL(None, use_errno=True)


def call(command, attributes):
    """bpf(command, attributes): its result, and the attributes as they are after it."""
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    result = _libc.syscall(SYSCALL[platform.machine()], command, buffer, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result, buffer.raw


def next_program(after):
    """The lowest program id above `after`. FileNotFoundError if there is none."""
    _, attributes = call(PROG_GET_NEXT_ID, struct.pack("=III", after, 0, 0))
    return struct.unpack_from("=I", attributes, 4)[0]


def program_name(program):
    """FileNotFoundError if the program has been unloaded."""
    descriptor, _ = call(PROG_GET_FD_BY_ID, struct.pack("=III", program, 0, 0))
    try:
        info = ctypes.create_string_buffer(INFO_SIZE)
        call(OBJ_GET_INFO_BY_FD, struct.pack("=IIQ", descriptor, INFO_SIZE, ctypes.addressof(info)))
    finally:
        os.close(descriptor)
    return info.raw[NAME_AT : NAME_AT + NAME_SIZE].rstrip(b"\0").decode()
