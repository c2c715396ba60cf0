"""What the cluster's names and values look like on the terminal: as they are."""

from __future__ import annotations

from rich.text import Text

from numakin.kubectl.output import show, table

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
