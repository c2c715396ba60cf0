"""What the stand-in kubelet sends, against what a real one was seen to send (1.36.2, containerd 2.3.4)."""

from __future__ import annotations

from typing import Any

import pytest

from lab.standins.kubelet.resources import of_container, of_sandbox
from lab.standins.runtime.records import pod_resources_of, resources_of

MIB = 1 << 20


def spec(own: dict[str, Any], *containers: dict[str, Any]) -> dict[str, Any]:
    return {"resources": own, "containers": [{"name": "c", "resources": resources} for resources in containers]}


LIMITED = spec({"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}}, {}, {})
REQUESTS = spec({"requests": {"cpu": "700m"}}, {}, {})
PLAIN = spec({}, {"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "8Mi"}}, {"requests": {"cpu": "500m"}})


@pytest.mark.parametrize(
    ("pod", "shares", "quota", "memory"),
    [(LIMITED, 1024, 100_000, 64 * MIB), (REQUESTS, 716, 0, 0), (PLAIN, 1536, 100_000, 8 * MIB)],
    ids=["with limits", "requests alone", "sums of those that are set"],
)
def test_of_a_sandbox(pod: dict[str, Any], shares: int, quota: int, memory: int):
    sent = pod_resources_of(**of_sandbox(pod))
    assert (sent.cpu.shares.value, sent.cpu.quota.value, sent.memory.limit.value) == (shares, quota, memory)
    assert sent.cpu.period.value == 100_000
    assert sent.cpu.HasField("quota"), "a set message, also without a value"


@pytest.mark.parametrize(
    ("pod", "shares", "quota", "memory"),
    [(LIMITED, 1024, 100_000, 64 * MIB), (REQUESTS, 2, 0, 0), (PLAIN, 1024, 100_000, 8 * MIB)],
    ids=["without its own, the pod's", "nothing", "its own"],
)
def test_of_its_first_container(pod: dict[str, Any], shares: int, quota: int, memory: int):
    sent = resources_of(**of_container(pod, pod["containers"][0]))
    assert (sent.cpu.shares.value, sent.cpu.quota.value, sent.memory.limit.value) == (shares, quota, memory)
