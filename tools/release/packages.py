"""The packages of a commit: wheel and sdist by setuptools, the chart as Helm packages it. Nothing is fetched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.release.krew import archive

_BUILD = """
import sys
from setuptools import build_meta
[out] = sys.argv[1:]
build_meta.build_wheel(out)
build_meta.build_sdist(out)
"""


def exported(root: Path, folder: Path) -> Path:
    """The committed files, in a folder of their own: nothing that lies about in the checkout gets into a package."""
    tree = folder / "tree"
    tree.mkdir()
    committed = subprocess.run(["git", "-C", root, "archive", "--format=tar", "HEAD"], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", tree], input=committed.stdout, check=True)
    return tree


def python_packages(tree: Path, out: Path) -> tuple[Path, Path]:
    """Wheel and sdist, in the folder `out`."""
    subprocess.run([sys.executable, "-c", _BUILD, out], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    return next(out.glob("*.whl")), next(out.glob("numakin-*.tar.gz"))


def chart(tree: Path, time: int) -> bytes:
    """What `helm package charts/numakin` writes, with one time for all files, in seconds since 1970."""
    top = tree / "charts"
    paths = sorted(path for path in (top / "numakin").rglob("*") if path.is_file())
    return archive({str(path.relative_to(top)): (path.read_bytes(), 0o644) for path in paths}, time)
