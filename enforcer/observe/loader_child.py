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

from enforcer.observe import btf

PROGRAM_TYPES = {
    "cgroup_skb": "CGROUP_SKB",
    "raw_tracepoint": "RAW_TRACEPOINT",
    "kprobe": "KPROBE",
    "tracing": "TRACING",
}


def load(request: dict[str, Any]) -> list[int]:
    """Descriptors of the request's maps, then of its programs."""
    import bcc  # noqa: PLC0415 -- its absence is an answer, not a failure to start

    offsets = btf.offsets(request["offsets"])
    flags = [f"-D{name}={value}" for name, value in request["defines"].items()]
    flags += [f"-DOFFSET_{name.replace('.', '_')}={value}" for name, value in offsets.items()]
    text = "\n".join(Path(path).read_text() for path in request["sources"])
    module = bcc.BPF(text=text, cflags=flags)
    kinds = {name: getattr(bcc.BPF, PROGRAM_TYPES[kind]) for name, kind in request["programs"].items()}
    programs = [module.load_func(name.encode(), kind).fd for name, kind in kinds.items()]
    return [module[name.encode()].map_fd for name in request["maps"]] + programs


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
