"""The images that `make images` built here, as archives. None is built or fetched: a release is cut offline."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

NAMES = ("enforcer", "extender")
REVISION = "org.opencontainers.image.revision"
"""The label by which tools/setup/images notes the commit."""

BUILDERS = ("buildah", "podman", "docker")


class NoImage(Exception):
    """An image is not there, or not of this commit; worded for who cuts the release."""


def taken_out(version: str, commit: str, out: Path) -> list[Path]:
    """One archive for each image. NoImage."""
    return [_taken_out(f"numakin-{name}:{version}", commit, out / f"numakin-{name}-{version}.tar") for name in NAMES]


def _taken_out(image: str, commit: str, file: Path) -> Path:
    for builder in filter(shutil.which, BUILDERS):
        labels = _labels(builder, image)
        if labels is None:
            continue
        if labels.get(REVISION) != commit:
            raise NoImage(
                f"{image} of {builder} is of {labels.get(REVISION) or 'no commit'}, not of {commit}: make images"
            )
        subprocess.run([builder, *_export(builder, image, file)], check=True, stdout=subprocess.DEVNULL)
        return file
    raise NoImage(f"{image} is not there: make images, or leave the images out by --no-images")


def _labels(builder: str, image: str) -> dict[str, str] | None:
    """None where the builder has no such image."""
    command = [builder, "inspect", "--type", "image", image]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    if asked.returncode:
        return None
    told: Any = json.loads(asked.stdout)
    first = told[0] if isinstance(told, list) else told
    config = first["OCIv1"]["config"] if builder == "buildah" else first["Config"]
    return dict(config.get("Labels") or {})


def _export(builder: str, image: str, file: Path) -> list[str]:
    if builder == "buildah":
        return ["push", "--quiet", image, f"oci-archive:{file}:{image}"]
    return (
        ["save", "--format", "oci-archive", "-o", str(file), image]
        if builder == "podman"
        else ["save", "-o", str(file), image]
    )
