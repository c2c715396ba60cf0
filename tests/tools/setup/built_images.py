"""The images as `tools/setup/images` builds them with buildah, from Debian 13 as mmdebstrap makes it: no registry is asked.

What was built is kept by what it was built from, in the cache folder of the tests' lab.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.lab import place
from tests.e2e.lab.image import ARCHITECTURES

ROOT = Path(__file__).parents[3]
DEBIAN = ROOT / "tests/tools/setup/debian_base"
TOOLS = {"mmdebstrap": "mmdebstrap", "buildah": "buildah", "unshare": "util-linux"}
NAMES = ("enforcer", "extender")
TWICE = "enforcer"
"""The one whose layers are compared with those of another build: each takes a minute or two."""

OWN = ARCHITECTURES.get(platform.machine(), "amd64")
"""This machine's architecture. Programs of another are emulated."""

ARCHITECTURE = os.environ.get("NUMAKIN_IMAGES_ARCHITECTURE", OWN)
"""Of the images that the tests are about."""

BASE = "localhost/numakin-base:trixie"
KEPT = 2
"""Builds in the cache, some 700 MB each: of this state of the project, and of the one that was tested before."""


@dataclass(frozen=True, slots=True)
class Image:
    """archive: what other programs load. root: its files. again: of TWICE, the layers of another build. architecture:
    what it says of itself.
    """

    name: str
    archive: Path
    root: Path
    architecture: str
    config: dict[str, Any]
    layers: list[str]
    again: list[str]

    @property
    def megabytes(self) -> float:
        """What its files take on a disk."""
        measured = subprocess.run(["du", "-s", "-B1", self.root], capture_output=True, text=True, check=True)
        return int(measured.stdout.split()[0]) / 1e6

    @property
    def packages(self) -> Path:
        """The folder of Python's packages."""
        return next(self.root.glob("opt/numakin/lib/python3*/site-packages"))


class Store:
    """A storage of buildah's own, with the means to build where there are no namespaces."""

    def __init__(self, folder: Path) -> None:
        settings = f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
        (folder / "storage.conf").write_text(settings)
        self._further = reaching_pips_index(folder)
        own = {"CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"), "STORAGE_DRIVER": "vfs"}
        self.environment = os.environ | own | {"BUILDAH_ISOLATION": "chroot"}

    def buildah(self, *arguments: str | Path) -> str:
        return self._run("buildah", *arguments)

    def build(self, name: str, tag: str, architecture: str) -> list[str]:
        """Its layers."""
        options = ("--builder", "buildah", "--base", BASE, "--platform", f"linux/{architecture}", "--tag", tag)
        self._run(ROOT / "tools/setup/images", name, *options, "--", *self._further)
        return self.layers(f"localhost/numakin-{name}:{tag}")

    def layers(self, image: str) -> list[str]:
        return self.inspected(image)["OCIv1"]["rootfs"]["diff_ids"]

    def inspected(self, image: str) -> dict[str, Any]:
        return json.loads(self.buildah("inspect", "--type", "image", image))

    def take_base(self, tar: Path, architecture: str) -> None:
        container = self.buildah("from", "scratch")
        self.buildah("add", "--quiet", container, tar, "/")
        self.buildah("config", "--arch", architecture, container)
        self.buildah("commit", "--quiet", "--rm", "--timestamp", "0", container, BASE)

    def _run(self, *command: str | Path) -> str:
        """What it prints; its messages go where the test's do. Nothing of it outlives a test that ends before it."""
        with subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                printed, _ = process.communicate()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        return printed.strip()


def images(architecture: str = OWN) -> dict[str, Image]:
    """By name; built if need be (4 min, emulated much longer). Raises CalledProcessError."""
    cache, foreign = place.cache(), "" if architecture == OWN else f"{architecture}-"
    base = cache / f"{foreign}debian-trixie-slim-{_digest(_recipe())}.tar"
    subprocess.run([DEBIAN, base, architecture], check=True, stdin=subprocess.DEVNULL)
    kept = cache / f"{foreign}images-{_digest([*_recipe(), *_sources()])}"
    with _alone(cache / f"{foreign}images.lock"):
        if not kept.exists():
            with _store() as store:
                _build(store, base, kept, architecture)
        os.utime(kept)
        for old in sorted(cache.glob(f"{foreign}images-*"), key=lambda each: each.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(old)
    return {name: _kept(kept, name) for name in NAMES}


@contextmanager
def _store() -> Iterator[Store]:
    """Empty, and gone afterwards: up to 2 GB."""
    folder = Path(tempfile.mkdtemp(prefix="numakin-images-", dir="/tmp"))
    try:
        yield Store(folder)
    finally:
        shutil.rmtree(folder)


def _build(store: Store, base: Path, kept: Path, architecture: str) -> None:
    """One after the other, since other tests run beside it, into the cache: whole or not at all."""
    store.take_base(base, architecture)
    part = kept.with_name(f"part-of-{kept.name}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for name in NAMES:
        _build_image(store, name, part, architecture)
    part.rename(kept)


def _build_image(store: Store, name: str, folder: Path, architecture: str) -> None:
    image = f"localhost/numakin-{name}:test"
    layers = store.build(name, "test", architecture)
    again = store.build(name, "again", architecture) if name == TWICE and architecture == OWN else []
    container = store.buildah("from", image)
    subprocess.run(["cp", "-a", store.buildah("mount", container), folder / name], check=True)
    store.buildah("push", "--quiet", image, f"docker-archive:{folder}/{name}.tar:{image}")
    inspected = store.inspected(image)["OCIv1"]
    told = {key: inspected[key] for key in ("architecture", "config")} | {"layers": layers, "again": again}
    (folder / f"{name}.json").write_text(json.dumps(told))


def _kept(folder: Path, name: str) -> Image:
    return Image(name, folder / f"{name}.tar", folder / name, **json.loads((folder / f"{name}.json").read_text()))


def _recipe() -> list[Path]:
    """What the base is made by."""
    return [DEBIAN, place.LAB / "debian.sh"]


def _sources() -> list[Path]:
    """What the images are made from: what builders are shown, and how."""
    shown = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    files = [ROOT / "tools/setup/images", ROOT / ".dockerignore", Path(__file__)]
    for each in (ROOT / name for name in shown):
        files += each.rglob("*") if each.is_dir() else [each]
    return sorted(file for file in files if file.is_file() and "__pycache__" not in file.parts)


def _digest(files: list[Path]) -> str:
    whole = hashlib.sha256()
    for file in files:
        whole.update(f"{file.relative_to(ROOT)} {file.stat().st_mode:o} {file.stat().st_size}\n".encode())
        whole.update(file.read_bytes())
    return whole.hexdigest()[:12]


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Two test runs may want them at once."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def reaching_pips_index(folder: Path) -> list[str]:
    """The builder's options by which pip in a build asks the index that this machine's pip asks, and trusts whom it does."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    settings = {
        key.rpartition(".")[2]: ast.literal_eval(value) for key, _, value in (line.partition("=") for line in lines)
    }
    wanted = {key: settings[key] for key in ("index-url", "proxy", "trusted-host") if key in settings}
    if not wanted and "cert" not in settings:
        return []
    shared = folder / "pip"
    shared.mkdir(exist_ok=True)
    if "cert" in settings:
        shutil.copy(settings["cert"], shared / "cert.pem")
        wanted["cert"] = "/run/pip/cert.pem"
    (shared / "pip.conf").write_text("[global]\n" + "".join(f"{key} = {value}\n" for key, value in wanted.items()))
    return ["--volume", f"{shared}:/run/pip:ro", "--volume", f"{shared}/pip.conf:/etc/pip.conf:ro"]


def inside(image: Image, folder: Path) -> list[str]:
    """What runs a command as a pod of the manifests does: as the image's user, on a root that can't be written, with /tmp in
    memory. folder: the machine's, there for writing under the same name.
    """
    user = image.config.get("User") or "0:0"
    subprocess.run(["chown", "-R", user, folder], check=True)
    script = f"""
set -e
mount --make-rprivate /
mount --bind {image.root} {image.root}
mount -o remount,bind,ro {image.root}
for each in proc sys dev; do mount --rbind /$each {image.root}/$each; done
mount -t tmpfs tmpfs {image.root}/tmp
mkdir -p {image.root}{folder}
mount --bind {folder} {image.root}{folder}
exec chroot --userspec={user} --groups= {image.root} /usr/bin/env -i "$@"
"""
    return ["unshare", "--mount", "sh", "-c", script, "sh", *image.config["Env"]]
