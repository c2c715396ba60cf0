"""Who asks a tool what it does is told, and nothing is done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "tools" / "setup"
BUILT_BY_ITS_OWN_WORDS = {"kubernetes"}
"""What it builds is known by what the script says: a word more would have it built anew everywhere."""

TOOLS = sorted(
    path.name
    for path in FOLDER.iterdir()
    if path.is_file() and os.access(path, os.X_OK) and path.name not in BUILT_BY_ITS_OWN_WORDS
)


def said(command: list[str], nowhere: Path) -> str:
    """nowhere: an empty folder, in place of all that a tool would keep."""
    own = {"HOME": str(nowhere), "NUMAKIN_CACHE": str(nowhere), "XDG_CACHE_HOME": str(nowhere), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, env={**os.environ, **own}, cwd=nowhere, check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not [*nowhere.iterdir()]
    return done.stdout


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_says_what_it_does(tmp_path: Path, tool: str, option: str) -> None:
    python = [sys.executable] if (FOLDER / tool).read_text().startswith("#!/usr/bin/env python3") else []
    text = said([*python, str(FOLDER / tool), option], tmp_path)
    assert tool in text.splitlines()[0]


def test_the_reference_says_what_it_makes(tmp_path: Path) -> None:
    assert "docs/" in said([sys.executable, "-m", "tools.reference", "--help"], tmp_path)
