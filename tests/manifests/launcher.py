"""python launcher.py PROFILE PROGRAM ARGUMENT...: runs a program under a seccomp profile in Kubernetes' JSON, by libseccomp.

Stricter than a container runtime: a process dies of a call that the profile does not allow, where there it would fail.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KILL_PROCESS, ERRNO, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
EQUAL, MASKED_EQUAL = 4, 7
"""seccomp.h of libseccomp."""

UNKNOWN = -1
"""A name that libseccomp has no number for, as runtimes pass over it."""


class _Argument(ctypes.Structure):
    """scmp_arg_cmp."""

    _fields_ = (
        ("index", ctypes.c_uint),
        ("operation", ctypes.c_int),
        ("value", ctypes.c_uint64),
        ("value_two", ctypes.c_uint64),
    )


def load(profile: Mapping[str, Any]) -> None:
    """For this thread and all that it starts. OSError where libseccomp or the kernel refuses."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    add = library.seccomp_rule_add_array
    add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
    context = library.seccomp_init(KILL_PROCESS)
    for rule in profile["syscalls"]:
        arguments = [_argument(each) for each in rule.get("args", ())]
        for name in rule["names"]:
            number = library.seccomp_syscall_resolve_name(name.encode())
            if number != UNKNOWN:
                compared = (_Argument * len(arguments))(*arguments)
                _done(add(context, _action(rule), number, len(arguments), compared), name)
    _done(library.seccomp_load(context), "seccomp_load")


def _action(rule: Mapping[str, Any]) -> int:
    return ALLOW if rule["action"] == "SCMP_ACT_ALLOW" else ERRNO | int(rule["errnoRet"])


def _argument(given: Mapping[str, Any]) -> _Argument:
    if given["op"] == "SCMP_CMP_MASKED_EQ":  # here the mask comes first
        return _Argument(given["index"], MASKED_EQUAL, given["value"], given["valueTwo"])
    return _Argument(given["index"], EQUAL, given["value"], 0)


def _done(status: int, what: str) -> None:
    if status:
        raise OSError(-status, os.strerror(-status), what)


if __name__ == "__main__":
    load(json.loads(Path(sys.argv[1]).read_text()))
    os.execv(sys.argv[2], sys.argv[2:])
