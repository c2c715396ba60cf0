"""A folder with numakin's wheel and what one part asks for, and nothing else: as pip would install it, made offline of what
is installed here.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lab.standins.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def built_wheel(folder: Path) -> Path:
    """Of the tracked files, in a tree of their own: setuptools leaves its own files in it."""
    tree, out = folder / "tree", folder / "wheel"
    out.mkdir(parents=True)
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        if name.startswith(("numakin/", "enforcer/", "extender/", "pyproject", "README", "LICENSE", "proto/", "web/")):
            target = tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    subprocess.run([sys.executable, "-c", BUILD, out], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    return next(out.glob("*.whl"))


def asked_for(part: str) -> dict[str, Distribution]:
    """Every distribution that pip would install for numakin[part], numakin alone where the part is empty, by name.
    PackageNotFoundError.
    """
    found: dict[str, Distribution] = {}
    wanted = [*PROJECT["dependencies"], *(PROJECT["optional-dependencies"][part] if part else ())]
    todo = [(Requirement(each), "") for each in wanted]
    while todo:
        requirement, extra = todo.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        if name not in found:
            found[name] = distribution(name)
        todo += [(Requirement(each), more) for more in requirement.extras for each in found[name].requires or ()]
        todo += [(below, "") for each in found[name].requires or () if not _reached(below := Requirement(each), found)]
    return found


def _reached(requirement: Requirement, found: dict[str, Distribution]) -> bool:
    return canonicalize_name(requirement.name) in found


def installed(folder: Path, wheel: Path, part: str, *more: str) -> Path:
    """The folder, as site-packages. more: distributions beside it."""
    folder.mkdir()
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder)
    for each in [*asked_for(part).values(), *map(distribution, more)]:
        for top in {file.parts[0] for file in each.files or () if file.parts[0] not in ("..", "__pycache__")}:
            source = Path(str(each.locate_file(top)))
            if source.exists() and not (folder / top).exists():
                (folder / top).symlink_to(source)
    return folder


def ran(site: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python code with the standard library and the folder on its path, in no environment."""
    start = f"import sys; sys.path.insert(0, {str(site)!r}); sys.dont_write_bytecode = True\n{code}"
    command = [sys.executable, "-I", "-S", "-c", start, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_S, env={"HOME": "/nonexistent"}
    )
