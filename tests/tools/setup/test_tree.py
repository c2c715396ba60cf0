"""A checkout is whole by itself: no link in it leads out or nowhere, and nothing lies at its top that it never mentions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S

ROOT = Path(__file__).parents[3]
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@t.example")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """With a file that its README mentions."""
    root = tmp_path / "checkout"
    (root / "docs").mkdir(parents=True)
    (root / "README.md").write_text("Kept in etcd. Start with `run.sh`, then read docs.\n")
    (root / "run.sh").write_text("exit 0\n")
    (root / "docs" / "page.md").write_text("A page.\n")
    subprocess.run([*GIT, "init", "--quiet", root], check=True)
    return root


def checked(root: Path) -> subprocess.CompletedProcess[str]:
    subprocess.run([*GIT, "-C", root, "add", "--all"], check=True)
    command = [sys.executable, ROOT / "tools" / "setup" / "tree", root]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def test_this_checkout_is_whole() -> None:
    done = subprocess.run(
        [ROOT / "tools" / "setup" / "tree"], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_whole_one_is_not_complained_of(checkout: Path) -> None:
    (checkout / "docs" / "again.md").symlink_to("page.md")
    assert (checked(checkout).returncode, checked(checkout).stderr) == (0, "")


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("/opt/k134/bin/etcd", "docs/link: a link that leads out of the tree, to /opt/k134/bin/etcd"),
        ("../../outside", "docs/link: a link that leads out of the tree, to ../../outside"),
        ("gone.md", "docs/link: a link that leads nowhere, to gone.md"),
    ],
    ids=["to another machine's folder", "above the top", "nowhere"],
)
def test_a_link_that_a_clone_can_not_follow_is_refused(checkout: Path, target: str, complaint: str) -> None:
    (checkout / "docs" / "link").symlink_to(target)
    done = checked(checkout)
    assert (done.returncode, done.stderr) == (1, f"{complaint}\n")


@pytest.mark.parametrize("name", ["left.txt", "run", "run.sh.orig"])
def test_a_file_at_the_top_that_nothing_mentions_is_refused(checkout: Path, name: str) -> None:
    (checkout / name).write_text(f"This is {name}.\n")
    done = checked(checkout)
    complaint = f"{name}: at the top of the tree, and nothing else in it mentions it\n"
    assert (done.returncode, done.stderr) == (1, complaint)


def test_a_tree_without_git_is_not_looked_at(tmp_path: Path) -> None:
    """As it is unpacked from an archive."""
    command = [sys.executable, ROOT / "tools" / "setup" / "tree", tmp_path]
    assert subprocess.run(command, check=False, timeout=PATIENCE_S).returncode == 0
