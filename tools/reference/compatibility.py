"""The table in `docs/compatibility.md` of what ran on which runtime and Kubernetes, and when.

The runs of the tests leave in build/ran.json what ran with what (tests/ran.py). `make reference` counts that by file of
tests into ran.json beside this module, and makes the table of it: `--check` goes by ran.json alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

LAST = Path(__file__).parents[2] / "build" / "ran.json"
KEPT = Path(__file__).with_name("ran.json")

TABLE = re.compile(r"(<!-- what ran: made by `make reference` -->\n).*?(<!-- end -->)", re.DOTALL)

Kept = dict[str, dict[str, dict[str, Any]]]
"""What a test ran on -> its file -> outcomes by their number, and the date."""


def take_over(last: Path = LAST, kept: Path = KEPT) -> None:
    """What ran here replaces what is known of the same file on the same."""
    if last.exists():
        known = _read(kept)
        for on, tests in json.loads(last.read_text()).items():
            for file in {test.partition("::")[0] for test in tests}:
                own = [told for test, told in tests.items() if test.partition("::")[0] == file]
                counts = Counter(outcome for outcome, _ in own)
                known.setdefault(on, {})[file] = {**counts, "date": max(date for _, date in own)}
        kept.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def page(before: str, kept: Path = KEPT) -> str:
    """The page with its table as the runs have it."""
    table = "\n".join(["| with | tests | outcome | when |", "|---|---|---|---|", *_rows(_read(kept)), ""])
    return TABLE.sub(lambda match: f"{match[1]}{table}{match[2]}", before)


def _rows(known: Kept) -> Iterator[str]:
    """Of what has the same to tell there is one."""
    alike: dict[str, list[str]] = {}
    for on, told in _told(known):
        alike.setdefault(told, []).append(on)
    return (f"| {', '.join(all_on)} | {told} |" for told, all_on in alike.items())


def _told(known: Kept) -> Iterator[tuple[str, str]]:
    """With what, and the rest of its row."""
    for on, files in sorted(known.items()):
        for date in sorted({counts["date"] for counts in files.values()}, reverse=True):
            of_day = {file: counts for file, counts in files.items() if counts["date"] == date}
            outcome: Counter[str] = Counter()
            for counts in of_day.values():
                outcome.update({name: number for name, number in counts.items() if name != "date"})
            told = ", ".join(f"{number} {name}" for name, number in sorted(outcome.items(), key=_passed_first))
            yield on, f"{_named(of_day)} | {told} | {date}"


def _passed_first(outcome: tuple[str, int]) -> tuple[bool, str]:
    return outcome[0] != "passed", outcome[0]


def _named(files: Mapping[str, object]) -> str:
    """Such as `tests/e2e`: beside_others, pinning."""
    by_folder: dict[str, list[str]] = {}
    for file in sorted(files):
        folder, _, name = file.rpartition("/")
        by_folder.setdefault(folder, []).append(name.removeprefix("test_").removesuffix(".py"))
    return "; ".join(f"`{folder}`: {', '.join(names)}" for folder, names in by_folder.items())


def _read(kept: Path) -> Kept:
    known: Kept = json.loads(kept.read_text()) if kept.exists() else {}
    return known
