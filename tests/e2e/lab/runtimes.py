"""The container runtimes that tests start: Debian's containerds, and those of CONTAINERD_BIN and CRIO_BIN.

Each of these variables names a folder with programs, or several, separated by colons: containerd, containerd-shim-runc-v2
and ctr; crio and pinns.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.lab import crio
from tests.e2e.lab.containerd import RealContainerd
from tests.e2e.lab.crio import RealCrio
from tests.e2e.lab.runtime import RealRuntime, root_folder

CONTAINERD_PACKAGES = ("containerd", "runc", "busybox-static")

VERSION = re.compile(r"\bv?(\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Installation:
    """A runtime that can be started. name: in a test's parameter. kind: its class. suite: of Debian, from which all comes
    that `programs`, a folder of this machine, does not have.
    """

    name: str
    kind: type[RealRuntime]
    suite: str
    programs: Path | None = None

    @property
    def version(self) -> tuple[int, ...]:
        """Such as (2, 1, 9); its Debian root folder must be there."""
        return tuple(map(int, self._version.partition("-")[0].split(".")))

    @property
    def title(self) -> str:
        """Such as "containerd 2.1.9" or "containerd 2.4.0-beta.0"."""
        return f"{self.kind.title} {self._version}"

    @property
    def has_validator(self) -> bool:
        """Whether its NRI is 0.10 or newer."""
        return self.version >= ((1, 34) if self.kind is RealCrio else (2, 2))

    @property
    def serves_old_kubelets(self) -> bool:
        """Whether it speaks the CRI of kubelets before 1.23 (v1alpha2): containerd 1.7 is the last."""
        return self.kind is RealContainerd and self.version < (2,)

    def root(self) -> Path:
        """Its Debian root folder, made if need be. Raises CalledProcessError."""
        if self.kind is RealCrio:
            return root_folder(f"crio-{self.suite}", self.suite, *crio.PACKAGES)
        return root_folder(f"containerd-{self.suite}", self.suite, *CONTAINERD_PACKAGES)

    def runtime(self, **options: Any) -> RealRuntime:
        """options: as RealRuntime's."""
        return self.kind(self.root(), self.programs, **options)

    @property
    def _version(self) -> str:
        if self.programs is not None:
            return version_of(str(self.programs / self.kind.programs[0]))
        return version_of("chroot", str(self.root()), f"/usr/bin/{self.kind.programs[0]}")


TRIXIE = Installation("containerd-trixie", RealContainerd, "trixie")
"""containerd 1.7, NRI 0.6."""

SID = Installation("containerd-sid", RealContainerd, "sid")
"""containerd 2, NRI 0.8 or newer. sid is a moving target, and now and then can't be installed for days."""


@functools.cache
def installations() -> tuple[Installation, ...]:
    """All that this machine can start. Raises LookupError for a folder that lacks a program."""
    return TRIXIE, SID, *_given("CONTAINERD_BIN", RealContainerd), *given_crios()


@functools.cache
def given_crios() -> tuple[Installation, ...]:
    """Of CRIO_BIN. Raises as `installations`."""
    return tuple(_given("CRIO_BIN", RealCrio))


@functools.cache
def version_of(*command: str) -> str:
    """What a program says of itself with `--version`, without what may follow the third number but a pre-release's name."""
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    found = VERSION.search(said)
    if found is None:
        raise LookupError(f"{' '.join(command)} --version: no version in {said.strip()!r}")
    return found[1]


def _given(variable: str, kind: type[RealRuntime]) -> Iterator[Installation]:
    for text in filter(None, os.environ.get(variable, "").split(":")):
        folder = Path(text).resolve()
        if lacking := [name for name in kind.programs if not os.access(folder / name, os.X_OK)]:
            raise LookupError(f"{variable}={text}: no {' and no '.join(lacking)} there")
        yield Installation(f"{kind.programs[0]}-{version_of(str(folder / kind.programs[0]))}", kind, "trixie", folder)
