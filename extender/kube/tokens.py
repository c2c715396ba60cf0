"""Which node an enforcer speaks for: its service account token, asked of the API server by TokenReview.

The token is projected into the enforcer's pod for our audience alone, and bound to that pod; so the API server knows
the pod, and from Kubernetes 1.30 on says on which node it runs. Before, that is read from the pod.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from extender.kube.api import Api, Unreachable

AUDIENCE = "numakin"
LONGEST = 16 * 1024
"""Characters of a token; real ones have about 1,000."""

_EXTRA = "authentication.kubernetes.io/"
_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"


class BadToken(Exception):
    """The token proves nothing; the text says why, and holds no part of it."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a token is bound to. node: empty before Kubernetes 1.30. pod, uid: of the pod; empty where it has none."""

    node: str
    pod: str
    uid: str


def node_of(api: Api, token: str, account: str) -> str:
    """The name of the node that the token speaks for.

    account: the only service account that may, NAMESPACE:NAME. BadToken when it is another's, or none at all; ApiError
    and Unreachable when the API server can't be asked.
    """
    if not token or len(token) > LONGEST or not token.isascii() or not token.isprintable():
        raise BadToken("not a token")
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [AUDIENCE]},
    }
    status = api.request("POST", _PATH, body=body).json().get("status") or {}
    try:
        bound = bound_in(status, account)
    except (AttributeError, TypeError, KeyError) as bad:
        raise Unreachable(f"POST {_PATH}: no TokenReview came back") from bad
    return bound.node or _node_of_pod(api, account.partition(":")[0], bound)


def bound_in(status: dict[str, Any], account: str) -> Bound:
    """By a TokenReview's status. BadToken where it is bound to no pod or node."""
    if not status.get("authenticated"):
        raise BadToken(status.get("error") or "not authenticated")
    # An API server that knows no audiences would have accepted a token for anything.
    if AUDIENCE not in (status.get("audiences") or ()):
        raise BadToken(f"not meant for audience {AUDIENCE}")
    user = status.get("user") or {}
    if user.get("username") != f"system:serviceaccount:{account}":
        raise BadToken(f"of {user.get('username')}, not of system:serviceaccount:{account}")
    extra = user.get("extra") or {}
    bound = Bound(*(_only(extra.get(_EXTRA + what) or []) for what in ("node-name", "pod-name", "pod-uid")))
    if not bound.node and not (bound.pod and bound.uid):
        raise BadToken("not bound to a pod on a node")
    return bound


def _only(names: list[str]) -> str:
    return str(names[0]) if len(names) == 1 else ""


def _node_of_pod(api: Api, namespace: str, bound: Bound) -> str:
    path = f"/api/v1/namespaces/{namespace}/pods"
    listed = api.request("GET", path, {"fieldSelector": f"metadata.name={bound.pod}"}).json().get("items") or []
    try:
        nodes = [pod["spec"].get("nodeName", "") for pod in listed if pod["metadata"]["uid"] == bound.uid]
    except (AttributeError, TypeError, KeyError) as bad:
        raise Unreachable(f"GET {path}: no list of pods came back") from bad
    if len(nodes) != 1 or not nodes[0]:
        raise BadToken(f"of a pod that is on no node: {bound.pod}")
    return str(nodes[0])
