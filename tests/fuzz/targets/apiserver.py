"""What the API server, or what stands between, answers: lists, watches and reviews."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from extender.kube import stream
from extender.kube.api import ApiError, Unreachable
from extender.kube.objects.grouprows import affinity_groups
from extender.kube.tokens import BadToken, bound_in
from tests.fuzz.target import Target, must, pieces

METADATA = {"name": "cart-0", "namespace": "shop", "uid": "u1", "resourceVersion": "7"}
POD = {
    "metadata": METADATA
    | {
        "annotations": {"group.numakin.io": "cart"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "cart-1", "uid": "r", "controller": True}],
    },
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": 5}}}],
        "initContainers": [{"name": "init", "restartPolicy": "Always"}],
    },
    "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{"name": "main"}]},
}
NODE = {"metadata": METADATA, "status": {"conditions": [{"type": "Ready", "status": "True"}], "addresses": []}}
GROUP = {
    "metadata": METADATA | {"generation": 3, "managedFields": [{"manager": "numakin"}]},
    "spec": {"size": 3, "priorities": [{"workload": "Deployment/cart", "priority": 7}]},
    "status": {"learned": "{}", "conditions": [{"type": "Accepted", "status": "True"}]},
}
KINDS: tuple[tuple[Callable[[], stream.Resource[Any]], dict[str, Any]], ...] = (
    (stream.pods, POD),
    (stream.nodes, NODE),
    (affinity_groups, GROUP),
)


def watch(data: bytes) -> None:
    """The first byte says of what kind; ApiError or BadFrame end it, and nothing else does."""
    resource = KINDS[data[0] % len(KINDS)][0]() if data else stream.pods()
    lines = stream.Lines()
    try:
        for part in pieces(data[1:]):
            stream.reduce(resource, lines.feed(part))
    except (ApiError, stream.BadFrame):
        pass


def page(data: bytes) -> None:
    """A list's page; what the watch takes for a bad answer is named in `extender.kube.watch`."""
    resource = KINDS[data[0] % len(KINDS)][0]() if data else stream.pods()
    try:
        listed = resource.page(data[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    must(all(resource.key(row) is not None for row in listed.rows), "each row has a key")


def review(data: bytes) -> None:
    """A TokenReview's status, whatever its shape."""
    try:
        status = json.loads(data)
        bound = bound_in(status, "numakin:enforcer")
        must(bound.node or (bound.pod and bound.uid), "a node or a pod has a name")
    except (ValueError, RecursionError, BadToken, Unreachable, AttributeError, TypeError, KeyError):
        pass


def _watches() -> Iterator[bytes]:
    for at, (_, body) in enumerate(KINDS):
        events = [{"type": kind, "object": body} for kind in ("ADDED", "MODIFIED", "BOOKMARK", "DELETED")]
        yield bytes([at]) + b"\n".join(json.dumps(event).encode() for event in events) + b"\n"
    error = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}
    yield b"\0" + json.dumps(error).encode() + b"\n"


def _pages() -> Iterator[bytes]:
    for at, (_, body) in enumerate(KINDS):
        yield (
            bytes([at]) + json.dumps({"metadata": {"resourceVersion": "7", "continue": "x"}, "items": [body]}).encode()
        )


def _reviews() -> Iterator[bytes]:
    user = {"username": "system:serviceaccount:numakin:enforcer"}
    user |= {"extra": {"authentication.kubernetes.io/node-name": ["n1"]}}
    yield json.dumps({"authenticated": True, "audiences": ["numakin"], "user": user}).encode()


TARGETS = (
    Target("watch", watch, _watches),
    Target("list", page, _pages),
    Target("token-review", review, _reviews),
)
