"""`python -m tools.release`: cuts a release into build/release."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from importlib.metadata import Distribution
from pathlib import Path

from packaging.utils import canonicalize_name

from tools.release import agreement, images, krew, packages, plugin

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "release"
LOCKED = ROOT / "tools" / "setup" / "locked" / "plugin.txt"

EXAMPLES = """\
examples:
  make images && make release
  make release ARGS="--url https://registry.example/numakin/v0.1.0"     where the files will be published
  make release ARGS=--no-images

Nothing is published, and no tag is set: the last lines printed say how.
"""


class NotCut(Exception):
    """Why there is no release; worded for who cuts it."""


def main(arguments: Sequence[str]) -> int:
    """The exit code: 0 done, 1 there is no release, which leaves none of an earlier one either."""
    parser = argparse.ArgumentParser(
        prog="make release", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", metavar="URL", help="where the files will be published: for Krew's manifest")
    parser.add_argument("--no-images", action="store_true", help="leave the images out")
    given = parser.parse_args(arguments)
    shutil.rmtree(OUT, ignore_errors=True)
    try:
        version, commit = _ready()
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / "release"
            part.mkdir()
            _cut(part, Path(folder), version, commit, given)
            OUT.parent.mkdir(exist_ok=True)
            shutil.copytree(part, OUT)
    except (NotCut, images.NoImage) as why:
        print(f"release: {why}", file=sys.stderr)
        return 1
    _told(version, url=given.url)
    return 0


def _ready() -> tuple[str, str]:
    """The version and the commit. NotCut where something is not committed, or places disagree about the version."""
    if changed := _git("status", "--porcelain"):
        raise NotCut(f"not committed, so that no commit would be what is released:\n{changed}")
    if wrong := agreement.disagreements(ROOT):
        raise NotCut("\n".join(["the version is not the same everywhere:", *wrong]))
    return agreement.version(ROOT), _git("rev-parse", "HEAD")


def _cut(out: Path, scratch: Path, version: str, commit: str, given: argparse.Namespace) -> None:
    epoch = int(_git("log", "-1", "--format=%ct"))
    try:
        (out / "tag.txt").write_text(f"numakin {version}\n\n{agreement.notes(ROOT)}")
    except ValueError as missing:
        raise NotCut(str(missing)) from missing
    if not given.no_images:
        images.taken_out(version, commit, out)
    tree = packages.exported(ROOT, scratch)
    wheel, _ = packages.python_packages(tree, out)
    (out / f"numakin-chart-{version}.tgz").write_bytes(packages.chart(tree, epoch))
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=")
    major, minor = oldest.split(".")
    one_file = plugin.made(wheel, _locked(project["dependencies"]), (int(major), int(minor)), time.gmtime(epoch)[:6])
    (out / "kubectl-numakin.pyz").write_bytes(one_file)
    (out / "kubectl-numakin.pyz").chmod(0o755)
    files = {krew.PROGRAM: (one_file, 0o755), "LICENSE": ((tree / "LICENSE").read_bytes(), 0o644)}
    packed, name = krew.archive(files, epoch), f"kubectl-numakin-{version}.tar.gz"
    (out / name).write_bytes(packed)
    url = f"{(given.url or f'https://REPOSITORY/releases/download/v{version}').rstrip('/')}/{name}"
    (out / "numakin.yaml").write_text(krew.manifest(version, url, packed, oldest, project["description"]))
    if subprocess.run([ROOT / "tools/setup/sbom"], check=False, stdout=subprocess.DEVNULL).returncode:
        raise NotCut("the lists of contents can't be made; its messages are above (once with a registry: make sbom)")
    for part in ("plugin", "extender", "enforcer"):
        shutil.copy(ROOT / "build" / "sbom" / f"{part}.cdx.json", out / f"numakin-{part}-{version}.cdx.json")
    _sums(out)


def _locked(requirements: list[str]) -> list[Distribution]:
    """What the plugin imports, in the versions that are locked. NotCut where this environment has others."""
    there = plugin.closure(requirements)
    pins = dict(line.split(" ")[0].split("==") for line in LOCKED.read_text().splitlines() if "==" in line)
    for each in there:
        name = canonicalize_name(each.name)
        if pins.get(name) != each.version:
            raise NotCut(f"{name} {each.version} is installed, and {pins.get(name)} is locked: make setup")
    return there


def _sums(out: Path) -> None:
    """As sha256sum writes and checks them."""
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(out.iterdir())]
    (out / "SHA256SUMS").write_text("".join(lines))


def _told(version: str, *, url: str | None) -> None:
    for path in sorted(OUT.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.relative_to(ROOT)}")
    if not url:
        print("Krew's manifest names no address: --url, or install by --archive")
    print(f"next: git tag --sign v{version} --file build/release/tag.txt, then publish the files (docs/release.md)")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotCut(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
