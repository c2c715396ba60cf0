"""A kustomize is found by what it can do, not by whether our manifests are whole: what is broken there is no want of one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S

SCRIPT = Path(__file__).parents[3] / "tools" / "setup" / "kustomize"

KNOWS = """#!/bin/sh
[ -f "$2/component/kustomization.yaml" ] && echo 'c: d'
"""
KNOWS_NO_COMPONENTS = "#!/bin/sh\nexit 1\n"


def there(folder: Path, kustomize: str) -> subprocess.CompletedProcess[str]:
    """What the script says where it lies beside no manifests at all, with this kustomize alone on the machine."""
    script = folder / "tools" / "setup" / "kustomize"
    programs = folder / "bin"
    script.parent.mkdir(parents=True)
    programs.mkdir()
    shutil.copy(SCRIPT, script)
    (programs / "kustomize").write_text(kustomize)
    (programs / "kustomize").chmod(0o755)
    for needed in ("bash", "sh", "mktemp", "mkdir", "grep", "rm", "dirname"):
        (programs / needed).symlink_to(shutil.which(needed) or "")
    environment = os.environ | {"PATH": str(programs), "NUMAKIN_CACHE": str(folder / "cache")}
    return subprocess.run(
        [script, "--there"], capture_output=True, text=True, env=environment, check=False, timeout=PATIENCE_S
    )


@pytest.mark.parametrize(
    ("kustomize", "status", "answer"),
    [(KNOWS, 0, "kustomize build\n"), (KNOWS_NO_COMPONENTS, 1, "")],
    ids=["one that knows components", "one that does not"],
)
def test_it_is_taken_for_what_it_can_do(tmp_path: Path, kustomize: str, status: int, answer: str) -> None:
    done = there(tmp_path, kustomize)
    assert (done.returncode, done.stdout) == (status, answer), done.stderr
