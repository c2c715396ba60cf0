"""Runs inside the emulated NUMA machine: bypass mode on cgroup v2 with several NUMA nodes, its pages included.

    python3 -m tests.e2e.guest.bypass

The machine's containerd is followed over CRI alone. Prints a JSON object a line: each pod as the kernel has it once it
is pinned, and again after `release`.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.standins.patience import PATIENCE_S, until
from numakin.wire import cri_pb2 as cri
from tests.e2e.guest import runtime
from tests.e2e.lab import kernel
from tests.e2e.lab.cri import Kubelet
from tests.e2e.lab.enforcer import ForkedEnforcer

TOUCHED, LIMIT = 16 << 20, 64 << 20
# dd fills its buffer and then waits for ever: sleep does not read.
COMMAND = ("/bin/busybox", "sh", "-c", f"dd if=/dev/zero bs={TOUCHED} 2>/dev/null | sleep 2147483647")
STRAY = 16 * 4096
"""Bytes, at most, that a container has elsewhere once its pages have moved: a page or two stay behind now and then."""

GROUPS = {"cart": "shop", "checkout": "shop", "ledger": "bank", "plain": ""}


def created(kubelet: Kubelet, pod: str) -> int:
    """The pid of a pod's container, its memory touched."""
    annotations = {"group.numakin.io": GROUPS[pod]} if GROUPS[pod] else {}
    resources = cri.LinuxContainerResources(cpu_shares=102, memory_limit_in_bytes=LIMIT)
    sandbox = kubelet.run_pod(pod, annotations=annotations, memory_limit=LIMIT)
    pid = kubelet.pid(kubelet.run(sandbox, command=COMMAND, resources=resources))
    until(lambda: kernel.anonymous_memory(pid).total() >= TOUCHED, f"{pod} to touch its memory", PATIENCE_S)
    return pid


def seen(pod: str, pid: int) -> dict[str, Any]:
    return {
        "pod": pod,
        "cgroup": asdict(kernel.cpuset(pid)),
        "allowed": asdict(kernel.allowed(pid)),
        "numa_stat": kernel.anonymous_memory(pid),
    }


def moved(pid: int) -> bool:
    """Whether its pages are where it is bound to. The kernel's figures follow a move some seconds later."""
    pages = kernel.anonymous_memory(pid)
    there = pages[int(kernel.cpuset(pid).mems)]
    return there >= TOUCHED and pages.total() - there <= STRAY


def main() -> None:
    kubelet = runtime.kubelet(runtime.RUNC)
    bypass = ("--mode", "bypass", "--cri-socket", f"unix://{runtime.SOCKET}", "--observe", "off")
    enforcer = ForkedEnforcer(Path(tempfile.mkdtemp()), Path("/nowhere"), *bypass)
    # Before the enforcer: pinned with its memory touched already.
    pids = {"cart": created(kubelet, "cart")}
    enforcer.start(PATIENCE_S)
    try:
        pids |= {pod: created(kubelet, pod) for pod in GROUPS if pod not in pids}
        members = [pod for pod, group in GROUPS.items() if group]
        written = until(
            lambda: len(result := enforcer.log_records("cpuset written")) == len(members) and result, "pins", PATIENCE_S
        )
        print(json.dumps({"ms_after_start": [int(entry["ms_after_start"]) for entry in written]}))
        until(lambda: all(moved(pids[pod]) for pod in members), "their pages to move", PATIENCE_S)
        for pod, pid in pids.items():
            print(json.dumps({"when": "pinned"} | seen(pod, pid)))
        print(json.dumps({"released": enforcer.ask("release")["released"]}))
        for pod, pid in pids.items():
            print(json.dumps({"when": "released"} | seen(pod, pid)), flush=True)
    except BaseException:
        print(enforcer.log_end(100))
        raise
    finally:
        enforcer.stop()


if __name__ == "__main__":
    main()
