"""A container image with a static busybox in it, as the docker-archive that `ctr images import` takes.

Usage: image.py OUT.tar [BUSYBOX]

It serves as the pods' pause image too: its default command sleeps. Standard library only, and no import of the
project: the NUMA machine's build runs this file by itself.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

NAME = "localhost/numakin-lab:1"

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As images name what `uname -m` does."""

FOLDERS = ("bin", "etc", "tmp", "var", "var/log", "run", "root", "proc", "sys", "dev", "opt")
ETC = {"etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n", "etc/group": b"root:x:0:\n"}


def add_file(tar: tarfile.TarFile, path: str, data: bytes, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(path)
    member.mode, member.size = mode, len(data)
    tar.addfile(member, io.BytesIO(data))


def add_special(tar: tarfile.TarFile, path: str, link: str = "") -> None:
    """A symbolic link to `link`, or a folder."""
    member = tarfile.TarInfo(path)
    member.type, member.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.DIRTYPE, "")
    member.mode = 0o1777 if path == "tmp" else 0o755
    tar.addfile(member)


def layer(busybox: Path) -> bytes:
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for folder in FOLDERS:
            add_special(tar, folder)
        add_file(tar, "bin/busybox", busybox.read_bytes(), 0o755)
        for applet in applets:
            if applet != "busybox":
                add_special(tar, f"bin/{applet}", link="/bin/busybox")
        for path, data in ETC.items():
            add_file(tar, path, data)
    return out.getvalue()


def write(out: Path, busybox: Path) -> None:
    """Writes the image NAME to the tar file `out`."""
    root = layer(busybox)
    digest = hashlib.sha256(root).hexdigest()
    config = json.dumps(
        {
            "architecture": ARCHITECTURES[platform.machine()],
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/busybox", "sleep", "2147483647"]},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]},
            "history": [{"created": "1970-01-01T00:00:00Z"}],
        }
    ).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = [{"Config": config_name, "RepoTags": [NAME], "Layers": [f"{digest}/layer.tar"]}]
    with tarfile.open(out, "w") as tar:
        add_special(tar, digest)
        add_file(tar, f"{digest}/layer.tar", root)
        add_file(tar, config_name, config)
        add_file(tar, "manifest.json", json.dumps(manifest).encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "/bin/busybox"))
