from collections.abc import Iterator
from pathlib import Path

import pytest

from extender.kube.api import Api
from extender.kube.config import connect
from standins.apiserver import ApiServer


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def api(server: ApiServer, tmp_path: Path) -> Api:
    result = connect(str(server.kubeconfig(tmp_path / "kubeconfig")), {})
    assert result is not None
    return result
