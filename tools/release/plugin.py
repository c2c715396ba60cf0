"""`kubectl-numakin` as one file: a zip that Python runs, with what it imports, for Linux and macOS alike.

What it imports is pure Python (PyYAML's faster half in C is left out, which it does without), taken from this virtual
environment in the locked versions.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SHEBANG = b"#!/usr/bin/env python3\n"
OWN = "numakin/"
GENERATED = "_pb2"
"""Messages between the programs, which need protobuf; the plugin speaks HTTP."""

Time = tuple[int, int, int, int, int, int]
"""Year, month, day, hour, minute and second, as zipfile has it."""

LICENCES = ("licenses/", "LICENSE", "LICENCE", "COPYING", "METADATA")

MAIN = '''\
"""kubectl numakin as one file. Understood by every Python, so that too old a one can say so."""
import os
import sys

OLDEST = {oldest}


def newer():
    """The newest python3.N on the PATH that will do; None without one."""
    for minor in range(OLDEST[1] + 20, OLDEST[1] - 1, -1):
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            path = os.path.join(folder, "python3.%d" % minor)
            if os.access(path, os.X_OK):
                return path
    return None


def main():
    if sys.version_info < OLDEST:
        other = newer()
        if other:
            os.execv(other, [other] + sys.argv)
        sys.stderr.write(
            "kubectl numakin: needs Python %d.%d or newer; %s is %d.%d\\n"
            % (OLDEST + (sys.executable,) + tuple(sys.version_info[:2]))
        )
        return 2
    if os.path.basename(sys.argv[0]).startswith("kubectl_complete-"):
        from numakin.kubectl.completion import main
    else:
        from numakin.kubectl.main import main
    return main()


sys.exit(main())
'''


def closure(requirements: list[str]) -> list[Distribution]:
    """The installed distributions that these requirements name, with those that they need. PackageNotFoundError."""
    found: dict[str, Distribution] = {}
    wanted = [Requirement(each) for each in requirements]
    while wanted:
        requirement = wanted.pop()
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found[name] = distribution(name)
        wanted += map(Requirement, found[name].requires or ())
    return [found[name] for name in sorted(found)]


def made(wheel: Path, distributions: list[Distribution], oldest: tuple[int, int], time: Time) -> bytes:
    """The file. wheel: numakin's own. oldest: the Python that is wanted. time: of every entry."""
    content = dict(_of_wheel(wheel))
    for each in distributions:
        content |= dict(_of(each))
    content["__main__.py"] = MAIN.replace("{oldest}", repr(oldest)).encode()
    out = io.BytesIO(SHEBANG)
    out.seek(0, io.SEEK_END)
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(content):
            info = zipfile.ZipInfo(name, time)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(info, content[name])
    return out.getvalue()


def _of_wheel(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            own = name.startswith(OWN) and name.endswith(".py") and GENERATED not in name
            if own or (".dist-info/" in name and _is_told(name)):
                yield name, files.read(name)


def _of(each: Distribution) -> Iterator[tuple[str, bytes]]:
    """Its modules and data, its licence and its metadata. What is compiled for one kind of machine is left out."""
    for file in each.files or ():
        name = file.as_posix()
        if name.startswith("..") or "__pycache__" in name or (".dist-info/" in name and not _is_told(name)):
            continue
        if name.endswith((".so", ".pyd", ".pyi")):
            continue
        yield name, Path(str(file.locate())).read_bytes()


def _is_told(name: str) -> bool:
    rest = name.partition(".dist-info/")[2]
    return rest.startswith(LICENCES)
