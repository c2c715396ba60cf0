"""The short-lived child that loads programs, hands the descriptors over, and exits.

What it costs leaves with it: a compiler's hundred megabytes, or the kernel's type information. It runs under whichever
interpreter can do what is asked, so it uses the standard library and its neighbours alone. Argument 1: the request as
JSON (see loader.py); argument 2: the number of a socket descriptor. The answer is one message: JSON, with the
descriptors of maps and programs, in the request's order.
"""

from __future__ import annotations

import array
import errno
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from enforcer.observe.bpf import btf, built

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


def compiled(request: dict[str, Any]) -> list[int]:
    """Descriptors of the request's maps, then of its programs, by bcc."""
    import bcc  # noqa: PLC0415 -- its absence is an answer, not a failure to start

    os.environ["BCC_KERNEL_SOURCE"] = str(built.SHIM)
    values = {**request["defines"], **request["switches"], **built.named(btf.offsets(request["offsets"]))}
    text = "\n".join(Path(path).read_text() for path in request["sources"])
    module = bcc.BPF(text=text, cflags=[f"-D{name}={value}" for name, value in values.items()])
    return [module[name.encode()].map_fd for name in request["maps"]] + programs(module, request["programs"])


def load(request: dict[str, Any]) -> tuple[dict[str, str], list[int]]:
    """What to answer, and the descriptors that go with it."""
    try:
        return {}, compiled(request) if request["compile"] else built.load(request)
    except ImportError as error:
        return {"absent": str(error)}, []
    except btf.BadBTF as error:
        return {"hopeless": str(error)}, []
    except built.NotBuilt as error:
        return {"error": str(error)}, []
    except OSError as error:
        return {"hopeless" if error.errno == errno.EPERM else "error": str(error)}, []
    except Exception as error:  # noqa: BLE001 -- whatever bcc raises is the reason that the parent reports
        return {"error": f"{type(error).__name__}: {error}"}, []


def main() -> None:
    request = json.loads(sys.argv[1])
    channel = socket.socket(fileno=int(sys.argv[2]))
    answer, descriptors = load(request)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    channel.sendmsg([json.dumps(answer).encode()], rights)
    # Descriptors in flight stay alive without this process; bcc's exit handlers would only cost time.
    sys.stderr.flush()
    os._exit(0)
