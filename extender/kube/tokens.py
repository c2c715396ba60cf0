"""Which node an enforcer speaks for: its service account token, asked of the API server by TokenReview.

The token is projected into the enforcer's pod for our audience alone, and bound to that pod; so the API server knows,
and says, on which node the pod runs.
"""

from __future__ import annotations

from typing import Any

from extender.kube.api import Api, Unreachable

AUDIENCE = "numakin"
LONGEST = 16 * 1024
"""Characters of a token; real ones have about 1,000."""

_NODE = "authentication.kubernetes.io/node-name"
_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"


class BadToken(Exception):
    """The token proves nothing; the text says why, and holds no part of it."""


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
        return node_in(status, account)
    except (AttributeError, TypeError, KeyError) as bad:
        raise Unreachable(f"POST {_PATH}: no TokenReview came back") from bad


def node_in(status: dict[str, Any], account: str) -> str:
    """The same from a TokenReview's status."""
    if not status.get("authenticated"):
        raise BadToken(status.get("error") or "not authenticated")
    # An API server that knows no audiences would have accepted a token for anything.
    if AUDIENCE not in (status.get("audiences") or ()):
        raise BadToken(f"not meant for audience {AUDIENCE}")
    user = status.get("user") or {}
    if user.get("username") != f"system:serviceaccount:{account}":
        raise BadToken(f"of {user.get('username')}, not of system:serviceaccount:{account}")
    names = (user.get("extra") or {}).get(_NODE) or []
    if len(names) != 1:
        raise BadToken("not bound to a pod on a node (a Kubernetes older than 1.30 does not say which)")
    return str(names[0])
