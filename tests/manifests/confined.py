"""A pytest plugin: both programs run under their seccomp profiles, in whatever tests start them.

python -m pytest -p tests.manifests.confined tests/soak tests/attack
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path

PROFILES = Path(__file__).parents[2] / "manifests" / "profiles" / "seccomp"
LAUNCHER = Path(__file__).with_name("launcher.py")

SCRIPT = """\
#!/bin/sh
case "$*" in
    *"-m extender"*) profile=numakin-extender ;;
    *"-m enforcer"*) profile=numakin-enforcer ;;
    *) exec {python} "$@" ;;
esac
exec {python} {launcher} {profiles}/$profile.json {python} "$@"
"""


def interpreter(folder: Path) -> Path:
    """A Python that runs the programs under their profiles, and all else as it is."""
    script = folder / "python"
    script.write_text(SCRIPT.format(python=sys.executable, launcher=LAUNCHER, profiles=PROFILES))
    script.chmod(0o755)
    return script


def pytest_configure() -> None:
    folder = Path(tempfile.mkdtemp(prefix="numakin-confined-"))
    atexit.register(shutil.rmtree, folder)
    sys.executable = str(interpreter(folder))
