"""What `make reference` writes is what the code says, and says so when it is not."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tools.reference import __main__ as reference
from tools.reference import compatibility, imports, options, processes, rooms

SVG = "{http://www.w3.org/2000/svg}"


def test_the_committed_pages_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert reference.main(["--check"]) == 0, capsys.readouterr().err


def test_a_page_that_is_not_current_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    some = {name: reference.PAGES[name] for name in ("options.md", "processes.svg")}
    for name in some:
        (tmp_path / name).write_text((reference.DOCS / name).read_text())
    (tmp_path / "processes.svg").write_text("<svg/>")
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    monkeypatch.setattr(reference, "PAGES", some)
    monkeypatch.setattr(compatibility, "take_over", lambda: None)  # into a file of this checkout
    assert reference.main(["--check"]) == 1
    assert capsys.readouterr().err == "not what the code says: docs/processes.svg; make reference\n"
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0


def test_the_walls_that_import_linter_holds_are_in_the_picture() -> None:
    edges, outside = imports.graph("enforcer")
    assert "enforcer.observer" not in edges["enforcer.hook"]
    assert "enforcer.hook" not in edges["enforcer.observer"]
    assert {"enforcer.nri", "enforcer.machine"} <= edges["enforcer.hook"]
    assert outside["enforcer.nri"] == {"process", "wire"}


def test_an_arrow_that_others_imply_is_left_out() -> None:
    assert imports.reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}


@pytest.mark.parametrize("picture", [rooms.picture, processes.picture], ids=["rooms", "processes"])
def test_a_picture_is_svg_in_which_no_box_covers_another(picture) -> None:
    root = ET.fromstring(picture())
    boxes = [
        tuple(float(rect.attrib[side]) for side in ("x", "y", "width", "height"))
        for group in root.findall(f"{SVG}g")
        for rect in group.findall(f"{SVG}rect")
    ]
    assert len(boxes) > 5
    for number, (left, top, width, height) in enumerate(boxes):
        for x, y, w, h in boxes[number + 1 :]:
            assert x >= left + width or x + w <= left or y >= top + height or y + h <= top
    wide, high = map(float, re.findall(r"[\d.]+", root.attrib["viewBox"])[2:])
    assert all(x + w <= wide and y + h <= high for x, y, w, h in boxes)


def test_what_several_commands_take_is_told_once() -> None:
    page = options.page("")
    assert page.count("`--kubeconfig FILE`") == 2, "the extender's own, and one for all commands of kubectl numakin"
    assert page.count("`--nri-socket PATH`") == 1
    assert "The options of `numakin-enforcer run`, and:" in page
    assert "`--mode nri\\|bypass`" in page, "a bar within a cell is no border"
