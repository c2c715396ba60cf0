"""A copy of this checkout where a release is cut."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lab.standins.patience import PATIENCE_S

ROOT = Path(__file__).parents[3]
VERSION: str = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[0]


@dataclass(frozen=True)
class Checkout:
    """A copy of this one, all of it committed, where a release is cut."""

    folder: Path

    def git(self, *arguments: str) -> str:
        named = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.hooksPath=/dev/null")
        done = subprocess.run(
            ["git", "-C", self.folder, *named, *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def change(self, name: str, before: str, after: str) -> None:
        path = self.folder / name
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after))

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "one")

    def cut(self, *options: str, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tools.release", *options]
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
            env=os.environ | {"PATH": path},
        )  # fmt: skip

    @property
    def released(self) -> Path:
        return self.folder / "build" / "release"


def copied(folder: Path) -> Checkout:
    made = Checkout(folder)
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--", ":!tests", ":!web"], check=True, capture_output=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, target)
    (ROOT / ".cache").mkdir(exist_ok=True)
    (folder / ".cache").symlink_to(ROOT / ".cache")  # the tools of the lists of contents: fetched once
    (folder / ".gitignore").write_text((folder / ".gitignore").read_text() + "/.cache\n")
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    made.commit()
    return made
