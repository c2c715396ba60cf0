"""python -m tools.reference [--check]: the tables and pictures of docs/ that are made from the code (`make reference`);
--check tells whether they are current.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tools.reference import compatibility, metrics, options, processes, rooms

DOCS = Path(__file__).parents[2] / "docs"

PAGES: dict[str, Callable[[str], str]] = {
    "compatibility.md": compatibility.page,
    "metrics.md": metrics.page,
    "options.md": options.page,
    "rooms.svg": lambda _: rooms.picture(),
    "processes.svg": lambda _: processes.picture(),
}
"""From the file as it is to the file as it should be."""


def main(arguments: list[str]) -> int:
    if {"-h", "--help"} & {*arguments}:
        print(__doc__)
        return 0
    if "--check" not in arguments:
        compatibility.take_over()
    stale = []
    for name, made in PAGES.items():
        path = DOCS / name
        before = path.read_text() if path.exists() else ""
        after = made(before)
        if after != before:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(after)
    if stale and "--check" in arguments:
        print(f"not what the code says: {', '.join(f'docs/{name}' for name in stale)}; make reference", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
