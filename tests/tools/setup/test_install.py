"""Set-up names what a machine lacks, and goes on without it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S

ROOT = Path(__file__).parents[3]
LINES = [
    line.split() for line in (ROOT / "tools/setup/debian-packages").read_text().splitlines() if line and line[0] != "#"
]
NEEDED = ("bash", "dirname", "awk", "grep", "id", "tail", "tee")
"""Of the machine, beside Python."""


@pytest.mark.parametrize(("package", "sign"), LINES, ids=[package for package, _ in LINES])
def test_an_installed_package_is_known_by_its_sign(package: str, sign: str) -> None:
    """Where there is no dpkg the sign is all that tells."""
    if shutil.which("dpkg-query") is None:
        pytest.skip("no dpkg here")
    command = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    status = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    if status != "installed":
        pytest.skip(f"{package} is not installed here")
    assert Path(sign).exists() or shutil.which(sign, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def bare(folder: Path, *, python: str) -> Path:
    """A PATH without apt, dpkg, and most programs. python: what answers to every name of an interpreter."""
    folder.mkdir()
    for name in NEEDED:
        result = shutil.which(name)
        assert result
        (folder / name).symlink_to(result)
    for name in ("python3.14", "python3.13", "python3.12", "python3.11", "python3"):
        (folder / name).write_text(python)
        (folder / name).chmod(0o755)
    return folder


def installed(folder: Path, what: str, *, python: str, packages: str | None = None) -> subprocess.CompletedProcess[str]:
    """tools/setup/install on a bare machine whose Python is a stand-in: the script's own first choice is left out. packages:
    in place of tools/setup/debian-packages.
    """
    script = (ROOT / "tools/setup/install").read_text().replace("/usr/bin/python3 python3.14", "python3.14")
    (folder / "tools" / "setup").mkdir(parents=True)
    (folder / "tools/setup/install").write_text(script)
    listed = (ROOT / "tools/setup/debian-packages").read_text() if packages is None else packages
    (folder / "tools/setup/debian-packages").write_text(listed)
    path = bare(folder / "bin", python=python)
    for name in ("mkdir", "cp"):
        (path / name).symlink_to(str(shutil.which(name)))
    return subprocess.run(
        ["bash", str(folder / "tools/setup/install"), str(folder / "venv"), what],
        env={"PATH": str(path)}, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


VENV = '[ "$1" = -m ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/pip" && cp "$0" "$3/bin/python"'
"""A stand-in Python makes a virtual environment of itself."""


def test_without_apt_what_is_missing_is_named_once_and_the_rest_is_set_up(tmp_path: Path) -> None:
    run = installed(tmp_path, "all", python=f"#!/bin/sh\n{VENV}\nexit 0\n")
    missing = next(line for line in run.stderr.splitlines() if "missing here" in line)
    assert "qemu-system-x86" in missing
    assert "wrk" in missing
    assert run.stderr.count("wrk") == 1
    assert run.stderr.endswith("setup: ready\n")
    assert run.returncode == 0


def test_without_a_python_it_says_which_is_wanted(tmp_path: Path) -> None:
    run = installed(tmp_path, "demo", python="#!/bin/sh\nexit 1\n")
    assert run.stderr.splitlines()[-1].startswith("setup: no Python of 3.11 or newer with venv and ensurepip")
    assert run.returncode == 1


@pytest.mark.parametrize(
    ("complaint", "status", "later"),
    [
        ("ERROR: No matching distribution found for flask==3.1.3", 0, ["install --editable .[demo]"]),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", 1, []),
    ],
    ids=["an index without the locked version", "a file with another hash"],
)
def test_only_where_an_index_lacks_a_locked_version_another_is_taken(
    tmp_path: Path, complaint: str, status: int, later: list[str]
) -> None:
    asked = f'[ "$1" = install ] && echo "$@" >> {tmp_path}/asked'
    refused = f'case "$*" in *--require-hashes*) echo "{complaint}"; exit 1;; esac'
    run = installed(tmp_path, "demo", python=f"#!/bin/sh\n{VENV}\n{asked}\n{refused}\nexit 0\n", packages="")
    first, *others = (tmp_path / "asked").read_text().splitlines()
    assert "--require-hashes" in first
    options = "--disable-pip-version-check --progress-bar off --no-compile "
    assert [line.replace(options, "") for line in others] == later
    assert complaint in run.stderr
    assert run.returncode == status
