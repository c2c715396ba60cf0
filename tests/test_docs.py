"""What documents name is there: files, folders, links and pictures."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
HISTORY = {"CHANGELOG.md"}
"""Names what was, too."""

PROGRAMS = ("numakin", "enforcer", "extender")

FILE = re.compile(r"[\w.-]+(/[\w.-]+)*\.(py|proto|toml|md|yaml|svg|c|h|sh)")
FOLDERS = ("numakin", "proto", "enforcer", "extender", "lab", "benchmarks", "tests", "docs", "manifests", "tools",
           "scheduler-config", "charts")  # fmt: skip


@cache
def files() -> frozenset[str]:
    folders = [ROOT / name for name in FOLDERS]
    inside = [path for folder in folders for path in folder.rglob("*") if "__pycache__" not in path.parts]
    return frozenset(str(path.relative_to(ROOT)) for path in [*ROOT.iterdir(), *inside])


def named(document: str) -> set[str]:
    """What stands between backticks and can only be a file or a folder of this repository."""
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^( {4}|```).*$", "", document, flags=re.MULTILINE))
    paths = {span.rstrip("/") for span in spans if re.fullmatch(r"[\w./-]+", span)}
    return {
        path
        for path in paths
        if FILE.fullmatch(path) or (path.partition("/")[0] in FOLDERS and "/" in path.rstrip("/"))
    }


def shown(document: str) -> set[str]:
    """Files and modules of this repository that commands name: `tests/x.py`, and `a/b` for `python -m a.b`."""
    words = re.findall(r"[\w./-]+", document)
    modules = re.findall(r"python[\d.]* -m ([\w.]+)", document)
    paths = {word for word in words if FILE.fullmatch(word)} | {module.replace(".", "/") for module in modules}
    return {path for path in paths if path.partition("/")[0] in FOLDERS and "/" in path}


def runs(path: str) -> bool:
    """Whether a command that names it finds it: by its whole path, a module's without its ending."""
    return not files().isdisjoint({path, f"{path}.py", f"docs/{path}"})


def there(path: str) -> bool:
    """By its whole path, or by the end of one where a paragraph has named the folder before."""
    return path in files() or any(known.endswith(f"/{path}") for known in files())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_that_a_document_names_is_there(document: Path) -> None:
    if document.name in HISTORY:
        return
    assert {path for path in named(document.read_text()) if not there(path)} == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_and_module_of_ours_that_a_command_names_is_there(document: Path) -> None:
    if document.name in HISTORY:
        return
    assert {path for path in shown(document.read_text()) if not runs(path)} == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_into_the_repository_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", document.read_text())
    inside = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    assert [link for link in inside if not (document.parent / link).exists()] == []


def test_each_message_that_troubleshooting_quotes_is_one_of_the_programs() -> None:
    """In tables headed "it says"; what other programs print stands between quotation marks."""
    page = (ROOT / "docs/troubleshooting.md").read_text()
    tables = re.findall(r"^\| it says .*\n\|[-|]+\n((?:\|.*\n)+)", page, flags=re.MULTILINE)
    quoted = {
        span for table in tables for row in table.splitlines() for span in re.findall(r"`([^`]+)`", row.split("|")[1])
    }
    sources = "\n".join(path.read_text() for half in PROGRAMS for path in (ROOT / half).rglob("*.py"))
    assert len(quoted) > 8
    assert {message for message in quoted if message not in sources} == set()


def test_a_path_that_is_not_there_would_be_noticed() -> None:
    text = (
        "`enforcer/cri/looking.py`, `looking.py`, `numakin/nothing/`, `numakin/placement/model/`, `cpuset.py`, `x.py y`"
    )
    assert {path for path in named(text) if not there(path)} == {
        "enforcer/cri/looking.py", "looking.py", "numakin/nothing",
    }  # fmt: skip


def test_a_command_for_what_is_not_there_would_be_noticed() -> None:
    text = "    pytest tests/test_docs.py tests/by_hand.py\n\n`python -m benchmarks.nothing`, `python3 -m benchmarks.decide`"
    assert {path for path in shown(text) if not runs(path)} == {
        "tests/by_hand.py", "benchmarks/nothing",
    }  # fmt: skip
