"""The container runtime of the emulated machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.e2e.lab.cri import Kubelet

SOCKET = Path("/run/containerd/containerd.sock")
CGROUP_PARENT = "/numakin-lab"

RUNC, CRUN = "runc", "crun"
"""What makes containers. Emulated, a pod takes runc more than twice the time: it runs from copies of itself, each of which
is translated anew.
"""


def kubelet(handler: str = CRUN) -> Kubelet:
    """Of its containerd, which is started where no program before has done so."""
    if not SOCKET.exists():
        subprocess.run(["lab-containerd"], check=True, stdout=subprocess.DEVNULL)
    return Kubelet(SOCKET, CGROUP_PARENT, handler)
