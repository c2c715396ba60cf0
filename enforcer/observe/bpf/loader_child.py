"""The short-lived child that compiles and loads with bcc, hands the descriptors over, and exits.

LLVM costs about a hundred megabytes, which leave with this process. It runs under whichever interpreter can import
bcc, so it uses the standard library and its neighbour btf alone. Argument 1: the request as JSON (see loader.py);
argument 2: the number of a socket descriptor. The answer is one message: JSON, with the descriptors of maps and
programs, in the request's order.
"""

from __future__ import annotations

import array
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from enforcer.observe.bpf import btf

PROGRAM_TYPES = {
    "cgroup_skb": "CGROUP_SKB",
    "raw_tracepoint": "RAW_TRACEPOINT",
    "kprobe": "KPROBE",
}
"""All but 'tracing', whose programs bcc loads by itself."""

EXITS = ("kretfunc__vmlinux__{}", "kretfunc__{}")
"""What KRETFUNC_PROBE makes of a kernel function's name, in newer and older versions of bcc."""


def programs(module: Any, kinds: dict[str, str]) -> list[int]:
    """Descriptors of the programs, loaded, in the order of `kinds`."""
    exits = {pattern.format(name).encode(): name for pattern in EXITS for name in kinds}
    loaded = {exits[name]: function.fd for name, function in module.funcs.items() if name in exits}
    for name, kind in kinds.items():
        if kind in PROGRAM_TYPES:
            loaded[name] = module.load_func(name.encode(), getattr(module, PROGRAM_TYPES[kind])).fd
    return [loaded[name] for name in kinds]


def load(request: dict[str, Any]) -> list[int]:
    """Descriptors of the request's maps, then of its programs."""
    import bcc  # noqa: PLC0415 -- its absence is an answer, not a failure to start

    offsets = btf.offsets(request["offsets"])
    flags = [f"-D{name}={value}" for name, value in request["defines"].items()]
    flags += [f"-DOFFSET_{name.replace('.', '_')}={value}" for name, value in offsets.items()]
    text = "\n".join(Path(path).read_text() for path in request["sources"])
    module = bcc.BPF(text=text, cflags=flags)
    return [module[name.encode()].map_fd for name in request["maps"]] + programs(module, request["programs"])


def main() -> None:
    request = json.loads(sys.argv[1])
    channel = socket.socket(fileno=int(sys.argv[2]))
    os.environ["BCC_KERNEL_SOURCE"] = request["shim"]
    try:
        descriptors = load(request)
        answer: dict[str, str] = {}
    except ImportError as error:
        descriptors, answer = [], {"absent": str(error)}
    except Exception as error:  # noqa: BLE001 -- whatever bcc raises is the reason that the parent reports
        descriptors, answer = [], {"error": f"{type(error).__name__}: {error}"}
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    channel.sendmsg([json.dumps(answer).encode()], rights)
    # Descriptors in flight stay alive without this process; bcc's exit handlers would only cost time.
    sys.stderr.flush()
    os._exit(0)
