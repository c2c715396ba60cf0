"""Nodes without NRI, with the enforcer on them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.standins.machines.in_memory import in_memory
from tests.enforcer.bypass.following import HURRIED, Bypassed


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: a unix socket's has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="numakin.", dir=in_memory()) as made:
        yield Path(made)


@pytest.fixture
def node(folder: Path) -> Iterator[Bypassed]:
    made = Bypassed(folder)
    made.runtime.start()
    made.start()
    yield made
    made.close()


@pytest.fixture
def hurried(folder: Path) -> Iterator[Bypassed]:
    """For what comes every ten seconds."""
    made = Bypassed(folder, program=HURRIED)
    made.runtime.start()
    made.start()
    yield made
    made.close()
