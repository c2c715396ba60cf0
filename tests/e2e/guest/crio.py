"""The emulated machine's CRI-O, as most nodes that have one: crun, systemd's cgroup driver, cgroup v2, overlays.

Its own programs come from the machine outside, all that they need is the emulated machine's.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from lab.standins.patience import PATIENCE_S, until
from tests.e2e.lab import image
from tests.e2e.lab.cri import Kubelet

PROGRAMS = ("crio", "pinns")
BIN = Path("/usr/local/bin")

SOCKET = Path("/run/crio/crio.sock")
NRI_SOCKET = Path("/run/nri/nri.sock")

ARCHIVE = Path("/usr/local/share/lab-image.tar")

CONFIG = f"""\
[crio]
storage_driver = "overlay"
[crio.runtime]
log_level = "info"
apparmor_profile = "unconfined"
[crio.image]
pause_image = "{image.NAME}"
pause_command = "/bin/busybox"
[crio.network]
plugin_dirs = ["/usr/lib/cni"]
[crio.nri]
enable_nri = true
nri_listen = "{NRI_SOCKET}"
nri_plugin_registration_timeout = "60s"
nri_plugin_request_timeout = "60s"
"""
"""The rest is as CRI-O has it. NRI's own timeouts are too short where every instruction is emulated."""


def start(programs: Path, parent: str) -> Kubelet:
    """programs: the folder that has them. parent: the slice of all pods."""
    for name in PROGRAMS:
        shutil.copy2(programs / name, BIN / name)
    file = Path("/run/numakin-crio.conf")
    file.write_text(CONFIG)
    _run("skopeo", "copy", f"docker-archive:{ARCHIVE}", f"containers-storage:{image.NAME}")
    unit = ("--unit=crio", "--service-type=notify", "--setenv=GOTRACEBACK=crash")
    _run("systemd-run", *unit, BIN / "crio", "--config", file, "--config-dir", "")
    kubelet = Kubelet(SOCKET, parent)
    until(kubelet.initialized, "CRI-O to be initialized", PATIENCE_S)
    until(lambda: kubelet.has_image(image.NAME), f"the image {image.NAME}", PATIENCE_S)
    return kubelet


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise ChildProcessError(f"{command[0]}: {done.stdout}{done.stderr}")
