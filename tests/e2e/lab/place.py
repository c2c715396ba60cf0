"""Where this lab keeps what it builds, and what it needs of the machine."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

LAB = Path(__file__).resolve().parent
REPOSITORY = LAB.parents[2]

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

RUNTIME_TOOLS = {"mmdebstrap": "mmdebstrap", "unshare": "util-linux", "nsenter": "util-linux"}
_NUMAVM_TOOLS = {"mmdebstrap": "mmdebstrap", "mkfs.ext4": "e2fsprogs"}
_EMULATORS = {
    "amd64": {"qemu-system-x86_64": "qemu-system-x86"},
    "arm64": {"qemu-system-aarch64": "qemu-system-arm"},
}


def numavm_tools(architecture: str) -> dict[str, str]:
    """What building and running the emulated NUMA machine takes."""
    return _NUMAVM_TOOLS | _EMULATORS[architecture] | foreign_tools(architecture)


def foreign_tools(architecture: str) -> dict[str, str]:
    """What runs single programs of that architecture here."""
    if architecture == "arm64" and platform.machine() != "aarch64":
        return {"qemu-aarch64-static": "qemu-user-static"}
    return {}


def cache() -> Path:
    """The folder that holds what tests build (hundreds of megabytes), made to be kept."""
    if own := os.environ.get("NUMAKIN_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numakin"


def lacking(tools: dict[str, str]) -> str:
    """Why the lab can't run here, in words, or "". tools: program -> the Debian package that has it."""
    if os.geteuid() != 0:
        return "needs root"
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    if shutil.which("apt-get", path=path) is None:
        return "needs a machine with Debian's apt"
    packages = {package for tool, package in tools.items() if shutil.which(tool, path=path) is None}
    if not KEYRING.exists():
        packages.add("debian-archive-keyring")
    return f"needs apt-get install {' '.join(sorted(packages))}" if packages else ""
