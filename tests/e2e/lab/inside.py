"""Programs beside a container's own, as `kubectl exec` starts them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from lab.standins.patience import PATIENCE_S

NAMESPACES = ("--mount", "--pid", "--ipc", "--uts", "--net")


def inside(pid: int, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in the namespaces and the root folder of a container's process, with no more capabilities than it has.

    The runtime's own exec enters the root of the mount namespace, which is not the container's where runc itself runs in a
    chroot. The container must have util-linux.
    """
    environment = dict(
        entry.split("=", 1) for entry in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in entry
    )
    allowed = re.findall(r"^CapBnd:\s*(\S+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[0]
    kept = [f"+cap_{number}" for number in range(64) if int(allowed, 16) >> number & 1]
    enter = ["nsenter", "--target", str(pid), *NAMESPACES, "--root", "--wd"]
    lower = ["/usr/bin/setpriv", "--bounding-set", ",".join(["-all", *kept]), "--"]
    return subprocess.run(
        [*enter, *lower, *command], env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
