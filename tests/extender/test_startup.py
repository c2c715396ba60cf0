"""What is taken up once at the start."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from extender import startup
from extender.config import load
from extender.kube.tls.own_ca import OwnCa
from extender.startup import connected, own_certificates
from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.faults import THROTTLED, Answer, Cut, Fault
from numakin.process.options import ConfigError
from tests.supervised import threads


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        running.create("v1", "namespaces", {"metadata": {"name": "numakin"}})
        yield running


@pytest.fixture
def certificates(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], OwnCa | None]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kubeconfig = str(server.kubeconfig(tmp_path / "kubeconfig"))
    config = load(["--own-ca", "--kubeconfig", kubeconfig, "--namespace", "numakin"], {})
    return lambda: own_certificates(config, connected(config), threads())


@pytest.mark.parametrize("fault", [THROTTLED, Answer(503), Cut()], ids=["too much to do", "not ready", "away"])
def test_an_api_server_that_has_no_answer_for_a_moment_is_asked_again(server, certificates, fault: Fault):
    server.order(fault, "get", "secrets")
    own = certificates()
    assert Path(own.files.cert).exists()


def test_one_that_refuses_is_not_and_no_folder_for_keys_is_left(server, certificates, tmp_path):
    """A pod's containers start again and again, with the same /tmp."""
    server.order(Answer(403), "get", "secrets")
    with pytest.raises(ConfigError, match="--own-ca: the API server does not give or take the certificates: 403"):
        certificates()
    assert [*tmp_path.glob("numakin-tls-*")] == []


def test_nor_one_that_is_away_for_long(server, certificates, monkeypatch):
    monkeypatch.setattr(startup, "PATIENCE_S", 0.0)
    server.order(Cut(), "get", "secrets")
    with pytest.raises(ConfigError, match="does not give or take"):
        certificates()
