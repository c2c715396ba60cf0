"""The API server's answers, however large the cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.standins.apiserver import ApiServer
from numakin.kubectl import apiserver
from numakin.kubectl.apiserver import connect
from numakin.kubectl.errors import Unanswered
from numakin.kubectl.pods import ENFORCER, own_pods

PODS = 7


@pytest.fixture
def api(tmp_path, monkeypatch) -> Iterator[apiserver.ApiServer]:
    """Of a cluster with so many enforcers that one answer can't hold them all."""
    monkeypatch.setattr(apiserver, "LARGEST_ANSWER", 4 << 10)
    monkeypatch.setattr(apiserver, "PAGE", 2)
    with ApiServer() as server:
        server.create("v1", "namespaces", {"metadata": {"name": "numakin"}})
        for number in range(PODS):
            labels, note = {"app.kubernetes.io/name": ENFORCER}, {"note": "x" * 1000}
            server.create_pod(f"enforcer-{number}", "numakin", labels=labels, annotations=note)
        yield connect(str(server.kubeconfig(tmp_path / "kubeconfig")), "")


def test_a_list_comes_page_by_page(api):
    assert {pod.name for pod in own_pods(api, "numakin", ENFORCER)} == {f"enforcer-{number}" for number in range(PODS)}


def test_an_answer_that_is_too_large_is_told_as_such(api):
    with pytest.raises(Unanswered, match="GET /api/v1/pods: the answer is larger than "):
        api.object("/api/v1/pods")
