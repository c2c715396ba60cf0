"""Names and values on the terminal: as they are."""

from __future__ import annotations

import pytest
from rich.table import Table

from numakin.terminal import NO_TERMINAL_COLUMNS, console, legible


@pytest.mark.parametrize("text", ["[fd00::5]:8080", "[/]", "[bold]shop", ":warning:"])
def test_text_is_no_markup(capsys: pytest.CaptureFixture[str], text: str) -> None:
    rows = Table("who", box=None)
    rows.add_row(text)
    out = console()
    out.print(rows)
    out.print(text, soft_wrap=True)
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == ["who", text, text]


def test_text_moves_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Nor clears it, changes its colour or rings."""
    console().print("two\n\tlines\x1b[2J\x9b31m\x07\x7f")
    assert {*capsys.readouterr().out}.isdisjoint("\x1b\x9b\x07\x7f")
    assert legible("two\n\tlines\x1b[2J").startswith("two\n\tlines\N{REPLACEMENT CHARACTER}[2J")


@pytest.mark.parametrize(("columns", "width"), [(None, NO_TERMINAL_COLUMNS), ("80", 80)])
def test_lines_are_long_where_no_terminal_says_how_wide_it_is(
    monkeypatch: pytest.MonkeyPatch, columns: str | None, width: int
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert console().width == width
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert console().width == width
