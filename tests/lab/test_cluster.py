"""What `make cluster` tells people to type next."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lab.cluster.__main__ import commands
from tests import test_commands_in_docs as typed


def test_each_command_is_typed_as_it_is_printed() -> None:
    up: Any = SimpleNamespace(
        plane=SimpleNamespace(kubeconfig="/tmp/c/admin.kubeconfig"),
        extenders=[SimpleNamespace(web="127.0.0.1:8083")],
        folder=Path("/tmp/c"),
    )
    printed = commands(up, "web-1")
    asked = list(typed.commands(printed.replace("  why there ", "    ").replace("  map ", "    ")))
    assert [arguments.split()[0] for _, arguments in asked] == ["explain", "map"]
    assert [why for command in asked if (why := typed.refused(*command))] == []
    assert "NAME" not in printed, "nothing is left to fill in"
