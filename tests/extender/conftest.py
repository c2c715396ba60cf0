from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.extender.running import Extender, running


@pytest.fixture
def extender(tmp_path: Path) -> Iterator[Extender]:
    """A real extender process without an API server."""
    with running(tmp_path) as one:
        yield one
