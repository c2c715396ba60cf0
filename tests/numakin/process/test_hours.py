"""Hours of the day: what is inside, and what is none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from numakin.process.hours import Hours


def at(text: str) -> float:
    hour, minute, second = map(int, text.split(":"))
    return datetime(2026, 7, 1, hour, minute, second, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("hours", "time", "inside"),
    [
        ("09:30-17:00", "09:29:59", False),
        ("09:30-17:00", "09:30:00", True),
        ("09:30-17:00", "16:59:59", True),
        ("09:30-17:00", "17:00:00", False),
        ("22:00-06:00", "21:59:59", False),
        ("22:00-06:00", "23:00:00", True),
        ("22:00-06:00", "00:00:00", True),
        ("22:00-06:00", "05:59:59", True),
        ("22:00-06:00", "06:00:00", False),
        ("00:00-00:01", "00:00:30", True),
        ("00:00-00:01", "12:00:00", False),
        ("18:00-00:00", "23:59:59", True),
        ("18:00-00:00", "00:00:00", False),
        ("", "12:34:56", True),
    ],
)
def test_what_is_inside(hours: str, time: str, inside: bool) -> None:  # noqa: FBT001
    parsed = Hours.parse(hours)
    assert parsed is not None
    assert parsed.include(at(time)) is inside


@pytest.mark.parametrize(
    "text",
    [
        "22-6",
        "22:00",
        "22:00-24:00",
        "22:00-06:60",
        "22:00-6:00",
        "22:00-22:00",
        " 22:00-06:00",
        "22:00-06:00,",
        "at night",
    ],
)
def test_what_is_none(text: str) -> None:
    assert Hours.parse(text) is None
