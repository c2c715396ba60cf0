from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.standins.apiserver import ApiServer
from tests.extender.kube.tls.site import Site


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates are left in no folder that others look through."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ApiServer() as server:
        made = Site(tmp_path, server)
        yield made
        made.port.stop()
