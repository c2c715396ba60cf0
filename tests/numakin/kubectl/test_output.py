"""What the cluster's names and values look like on the terminal: as they are."""

from __future__ import annotations

import pytest
from rich.text import Text

from numakin.kubectl.output import console, legible, show, table


@pytest.mark.parametrize("text", ["[fd00::5]:8080", "[/]", "[bold]shop", ":warning:"])
def test_text_is_no_markup(capsys, text):
    rows = table("who")
    rows.add_row(text)
    out = console()
    out.print(rows)
    out.print(text, soft_wrap=True)
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == ["WHO", text, text]


OBEYED = "\x1b[2J\x9b31m\x07\x7f"
"""Clears the screen, changes the colour, rings."""


def test_text_moves_no_terminal(capsys):
    rows = table("who")
    rows.add_row(f"a{OBEYED}")
    rows.add_row(Text(f"b{OBEYED}"))
    rows.title = f"c{OBEYED}"
    show(None, "table", lambda: [rows, f"d{OBEYED}", Text(f"e{OBEYED}\nf")])
    out = capsys.readouterr().out
    assert {*out}.isdisjoint("\x1b\x9b\x07\x7f")
    assert all(letter in out for letter in "abcdef")
    assert legible(f"two\n\tlines{OBEYED}").startswith("two\n\tlines\N{REPLACEMENT CHARACTER}[2J")
