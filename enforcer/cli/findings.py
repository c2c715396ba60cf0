"""What a doctor finds: one fact each, with what it means and what to run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BAD, NOTE, GOOD = "bad", "note", "good"
GRADES = (BAD, NOTE, GOOD)
"""The worst first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """grade: good, note (works, but read this), bad (something will not work). command: what shows more, or helps;
    empty: the text says it.
    """

    topic: str
    grade: str
    text: str
    command: str = ""


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first, those alike in their order."""
    return sorted(findings, key=lambda finding: GRADES.index(finding.grade))
