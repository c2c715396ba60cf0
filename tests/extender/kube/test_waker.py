"""Pods that were refused everywhere are touched, so that kube-scheduler tries them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from extender.kube.api import Api
from extender.kube.waker import ANNOTATION, Waker
from extender.state.pods import PodRow
from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.faults import Answer, Cut, Fault
from lab.standins.patience import until
from tests.supervised import threads


@pytest.fixture
def wake(api: Api) -> Iterator[Callable[[dict[str, Any]], None]]:
    waker = Waker(api, threads=threads())
    waker.start()
    yield lambda pod: waker.wake(PodRow(pod["metadata"]["uid"], "default", pod["metadata"]["name"]))
    waker.stop(10.0)


def woken(api: Api, name: str) -> bool:
    metadata = api.get(f"/api/v1/namespaces/default/pods/{name}").json()["metadata"]
    return ANNOTATION in (metadata.get("annotations") or {})


@pytest.mark.parametrize("fault", [Answer(500), Answer(429, b"", {"Retry-After": "0"}), Cut()], ids=repr)
def test_one_is_woken_though_the_api_server_does_not_take_it_at_first(
    server: ApiServer, api: Api, wake: Callable[[dict[str, Any]], None], fault: Fault
) -> None:
    pod = server.create_pod("web")
    server.order(fault, "patch", "pods", times=2)
    wake(pod)
    until(lambda: woken(api, "web"), "the pod is woken")


def test_one_that_is_no_more_keeps_no_other_from_being_woken(
    server: ApiServer, api: Api, wake: Callable[[dict[str, Any]], None]
) -> None:
    gone, pod = server.create_pod("gone"), server.create_pod("web")
    server.delete("v1", "pods", "gone", namespace="default", grace_s=0)
    wake(gone)
    wake(pod)
    until(lambda: woken(api, "web"), "the other is woken")
