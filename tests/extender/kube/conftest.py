from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from extender.kube.api import Api
from extender.kube.config import connect
from extender.kube.stream import pods
from extender.kube.watch import ListWatch, Pace
from lab.standins.apiserver import ApiServer
from lab.standins.patience import PATIENCE_S
from tests.extender.kube.viewing import QUICK, View
from tests.supervised import threads


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def api(server: ApiServer, tmp_path: Path) -> Api:
    result = connect(str(server.kubeconfig(tmp_path / "kubeconfig")), {})
    assert result is not None
    return result


@pytest.fixture
def view() -> View:
    return View()


@pytest.fixture
def watched(api: Api, view: View) -> Iterator[Callable[..., ListWatch]]:
    """Starts a watch of pods."""
    started: list[ListWatch] = []

    def start(pace: Pace = QUICK) -> ListWatch:
        watcher = ListWatch(api, pods(), view.take, pace, threads=threads())
        started.append(watcher)
        watcher.start()
        assert watcher.synced.wait(PATIENCE_S)
        return watcher

    yield start
    for entry in started:
        entry.stop()
