"""Figures of the extender's replicas, each asked by itself through the API server's pod proxy."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

from numakin.kubectl.apiserver import ApiServer
from numakin.kubectl.pods import OwnPod

PORTS = ("health", "metrics", "web")
"""The names that the port of /metrics may have, the likeliest first."""


def counted(
    api: ApiServer, namespace: str, pods: Iterable[OwnPod], name: str, **labels: str
) -> tuple[float, list[str]]:
    """A counter's sum over these pods and over all labels but the given, and the pods that show no metrics."""
    texts = {pod.name: _metrics(api, namespace, pod) for pod in pods}
    total = sum(
        sample.value
        for text in texts.values()
        for family in text_string_to_metric_families(text or "")
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )
    return total, [pod for pod, text in texts.items() if text is None]


def _metrics(api: ApiServer, namespace: str, pod: OwnPod) -> str | None:
    port = next((pod.ports[each] for each in PORTS if each in pod.ports), None)
    if port is None:
        return None
    for scheme in ("https:", "http:"):
        answer = api.get(f"/api/v1/namespaces/{namespace}/pods/{scheme}{pod.name}:{port}/proxy/metrics")
        if answer.status == 200:
            return answer.body.decode(errors="replace")
    return None
