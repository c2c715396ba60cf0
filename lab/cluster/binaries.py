"""Kubernetes' programs: where they are, and which version they have."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "tools" / "setup" / "kubernetes"


class NoKubernetes(RuntimeError):
    """The programs can't be had here; the text says why."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """folder: holds the programs. minor: of the version 1.MINOR."""

    folder: Path
    minor: int

    def __getitem__(self, program: str) -> str:
        return str(self.folder / program)

    @property
    def title(self) -> str:
        """Such as "Kubernetes 1.36"."""
        return f"Kubernetes 1.{self.minor}"

    @property
    def speaks_cri_v1(self) -> bool:
        """Whether the kubelet does; before 1.23 it speaks v1alpha2 alone, which newer runtimes have dropped."""
        return self.minor >= 23

    @property
    def kubectl(self) -> str:
        """One that knows kustomize's components, where the machine has it; else the folder's own."""
        return shutil.which("kubectl") or self["kubectl"]


@functools.cache
def binaries(*, build: bool = False) -> Binaries:
    """Those of KUBERNETES_BIN, or those that tools/setup/kubernetes built. build: builds them where need be, which
    takes 12 CPU minutes. NoKubernetes where there are none.
    """
    command = [str(SCRIPT)] if build else [str(SCRIPT), "--there"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=None if build else subprocess.PIPE,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise NoKubernetes((done.stderr or "tools/setup/kubernetes failed; see its messages above").strip())
    folder = Path(done.stdout.strip())
    version = subprocess.run(
        [folder / "kube-apiserver", "--version"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    parsed = re.search(r"v1\.(\d+)", version)
    if parsed is None:
        raise NoKubernetes(f"{folder}/kube-apiserver --version: no version of Kubernetes: {version.strip()}")
    return Binaries(folder, int(parsed[1]))
