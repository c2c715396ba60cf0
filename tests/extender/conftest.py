from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.standins.apiserver import ApiServer
from tests.extender.running import Extender, running
from tests.extender.told import clock, cluster

__all__ = ["clock", "cluster"]


@pytest.fixture
def extender(tmp_path: Path) -> Iterator[Extender]:
    """A real extender process without an API server."""
    with running(tmp_path) as first:
        yield first


@pytest.fixture
def watching(server: ApiServer, tmp_path: Path) -> Iterator[Extender]:
    """One that follows the pods of the test's own API server, the fixture `server`."""
    options = ("--kubeconfig", str(server.kubeconfig(tmp_path / "kubeconfig")), "--namespace", "default")
    with running(tmp_path, "--kube", *options, "--publish-period", "0.2") as extender:
        server.wait_for("watches", 1, resource="pods")
        yield extender
