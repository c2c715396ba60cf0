"""What kube-scheduler, or who can reach its port, sends: the extender/v1 bodies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from extender.scheduler import wire
from extender.scheduler.pod_body import BadRequest
from tests.extender.running import RECORDINGS
from tests.fuzz.target import Target, must


def _refusing(run: Callable[[bytes], Any]) -> Callable[[bytes], None]:
    def target(data: bytes) -> None:
        try:
            run(data)
        except BadRequest as bad:
            must(len(str(bad)) < 1000, "a refusal is short")

    return target


def _arguments(data: bytes) -> None:
    call = wire.arguments(data)
    must(len(call.names) <= wire.NODES, "no more nodes than the bound")
    answer = _read(wire.filter_answer(call, wire.FilterRefusals(dict.fromkeys(call.names[:1], "full"))))
    kept = answer["NodeNames"] if call.items is None else answer["Nodes"]["items"]
    must(len(kept) == len([name for name in call.names if name != call.names[0]]), "all others are kept")


def _preempt(data: bytes) -> None:
    json.loads(wire.preempt_answer(wire.preempt_arguments(data).victims))


def _plain(data: bytes) -> None:
    """What is answered without being decoded is valid JSON, and refused whenever the decoded way refuses its shape."""
    if wire.plain(data):
        wire.no_scores(data)
        _read(wire.every_node(data))


def _read(answer: bytes) -> Any:
    """What is handed back unread keeps the bytes that came, UTF-8 or not."""
    return json.loads(answer.decode(errors="replace"))


def _recorded() -> Iterator[bytes]:
    for path in sorted(RECORDINGS.glob("*.raw")):
        body = path.read_bytes()
        yield body
        yield body.replace(b"numa.example/affinity-group", b"group.numakin.io")
    yield _POD_AND_NAMES


_POD_AND_NAMES = json.dumps(
    {
        "Pod": {
            "metadata": {
                "name": "cart-0",
                "namespace": "shop",
                "uid": "u1",
                "annotations": {"group.numakin.io": "cart"},
            },
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]},
        },
        "NodeNames": ["n1", "n2"],
    }
).encode()


def _questions() -> Iterator[bytes]:
    pod = json.loads(_POD_AND_NAMES)["Pod"]
    yield json.dumps({"questions": [{"pods": [pod, pod], "nodes": ["n1"]}, {"pods": [pod]}]}).encode()


TARGETS = (
    Target("scheduler-filter", _refusing(_arguments), _recorded),
    Target("scheduler-preempt", _refusing(_preempt), _recorded),
    Target("scheduler-plain", _refusing(_plain), _recorded),
    Target("scheduler-questions", _refusing(lambda data: wire.questions(data, 100)), _questions),
)
