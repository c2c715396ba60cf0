"""What documents name is there: files, folders, links and pictures; and a reader gets through them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
HISTORY = {"CHANGELOG.md"}
"""Names what was, too."""

README_WORDS = 700
"""Ten minutes' reading with what it links to first."""

PAGES_WORDS = 30_000
"""Of all pages of docs/ together, generated ones too: what a newcomer may be asked to find something in."""

SENTENCE_WORDS = 25
"""What a sentence of a page has on average is well below that, and few are longer."""

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


def words(text: str) -> int:
    """What has a letter or a digit: a table's lines are no words."""
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def sentences(document: str) -> list[str]:
    """Of its running text: no tables, commands, pictures and headings. What is between backticks is one word."""
    text = re.sub(r"^( {4}|```|\||!\[|#|<!--).*$", "", document, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "Code", re.sub(r"\]\([^)]*\)", "]", text))
    paragraphs = re.split(r"\n\s*\n|\n(?=[-*] |\d+\. )", text)
    ends = r"(?<=[.!?;:])[\")*]*\s+"
    return [part for paragraph in paragraphs for part in re.split(ends, " ".join(paragraph.split())) if words(part)]


def test_the_readme_is_read_in_minutes() -> None:
    assert words((ROOT / "README.md").read_text()) <= README_WORDS


def test_all_pages_together_are_no_longer_than_a_reader_bears() -> None:
    pages = {str(path.relative_to(ROOT)): words(path.read_text()) for path in (ROOT / "docs").rglob("*.md")}
    assert sum(pages.values()) <= PAGES_WORDS, sorted(pages.items(), key=lambda page: -page[1])[:10]


@pytest.mark.parametrize(
    "document", [path for path in DOCUMENTS if path.name not in HISTORY], ids=lambda path: path.name
)
def test_sentences_of_a_document_are_short(document: Path) -> None:
    """Three quarters of the bound on average; one in ten may be over it."""
    lengths = {sentence: words(sentence) for sentence in sentences(document.read_text())}
    long = {sentence: length for sentence, length in lengths.items() if length > SENTENCE_WORDS}
    assert sum(lengths.values()) <= 0.75 * SENTENCE_WORDS * len(lengths)
    assert len(long) <= max(1, len(lengths) // 10), long


def test_what_counts_as_a_word_and_a_sentence() -> None:
    page = "# Head\n\n| a | b |\n\n    make demo\n\nOne `x y` here. Two, [three](x.md) more; four:\n\n- Five.\n- six\n"
    assert sentences(page) == ["One Code here.", "Two, [three] more;", "four:", "- Five.", "- six"]
    assert words("| a | b-c |\n|---|---|\n") == 2


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


def test_a_log_that_is_searched_is_read_whole() -> None:
    """With a selector kubectl shows a pod's last ten lines, unless it is told otherwise."""
    texts = [*DOCUMENTS, *(path for half in PROGRAMS for path in (ROOT / half).rglob("*.py"))]
    commands = [each for text in texts for each in re.findall(r"kubectl[^`\n|]* logs -l[^`\n|]*", text.read_text())]
    assert len(commands) > 1
    assert [each for each in commands if "--tail=" not in each] == []


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
