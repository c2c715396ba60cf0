"""What the cluster's names and values look like on the terminal: as they are."""

from __future__ import annotations

import pytest

from numakin.kubectl.output import console, table


@pytest.mark.parametrize("text", ["[fd00::5]:8080", "[/]", "[bold]shop", ":warning:"])
def test_text_is_no_markup(capsys, text):
    rows = table("who")
    rows.add_row(text)
    out = console()
    out.print(rows)
    out.print(text, soft_wrap=True)
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == ["WHO", text, text]
