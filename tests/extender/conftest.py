from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from lab.standins.apiserver import ApiServer
from tests.extender.running import Extender, running
from tests.extender.told import clock, cluster

__all__ = ["clock", "cluster"]

structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)
"""Of what runs within pytest. By itself structlog draws exceptions with all that their frames hold, for a second each."""


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
