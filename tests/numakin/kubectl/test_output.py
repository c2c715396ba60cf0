"""What the cluster's names and values look like on the terminal: as they are."""

from __future__ import annotations

from rich.text import Text

from numakin.kubectl.output import show, some, table

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


def test_of_thousands_of_names_a_line_has_a_few():
    assert some([]) == "none"
    assert some(["a", "b"]) == "a, b"
    assert some([f"node-{number}" for number in range(5000)]) == "node-0, node-1, node-2, node-3, node-4 and 4995 more"
