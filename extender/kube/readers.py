"""Who may read what numakin knows: asked of the API server, by the caller's token and the namespace that is read.

As kube-rbac-proxy does it: TokenReview says who calls, SubjectAccessReview whether they may list AffinityGroups, in the
namespace that the answer is about or, for answers about all, in every namespace.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from extender.kube.api import Api, ApiError, Unreachable
from extender.kube.tokens import AUDIENCE, LONGEST

KNOWN_S = 10.0
"""Seconds that an answer of the API server counts: so long a right that was taken away may still be used."""

KNOWN = 1_000
"""Answers that are kept."""

TOKEN_HEADER = "X-Numakin-Token"  # noqa: S105 - the name of a header
"""The API server's service proxy takes `Authorization` away from what it passes on; so a token for numakin's audience
may come in this header.
"""

_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

Known = TypeVar("Known")


class Unknown(Exception):
    """A token that the API server does not know."""


class Forbidden(Exception):
    """A reader without the right to read this."""


@dataclass(frozen=True, slots=True)
class Caller:
    name: str
    groups: tuple[str, ...]


class Readers:
    """Thread-safe."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._callers: _Kept[Caller | None] = _Kept()
        self._allowed: _Kept[bool] = _Kept()

    def check(self, token: str, namespace: str) -> str:
        """The caller's name. namespace: which the answer is about; empty: all.

        Unknown or Forbidden, worded for the caller; Unreachable when the API server can't be asked.
        """
        if not token or len(token) > LONGEST or not token.isascii() or not token.isprintable():
            raise Unknown("a token of the API server is needed: kubectl create token ACCOUNT")
        key = hashlib.sha256(token.encode()).digest()
        try:
            caller = self._callers.get(key, lambda: self._caller(token))
            if caller is None:
                raise Unknown("the API server does not know this token")
            if not self._allowed.get((caller, namespace), lambda: self._may(caller, namespace)):
                where = f"in namespace {namespace}" if namespace else "in all namespaces"
                raise Forbidden(f"{caller.name} may not list affinitygroups.numakin.io {where}")
        except ApiError as refused:
            raise Unreachable(f"the API server can't check the token: {refused}") from refused
        return caller.name

    def _caller(self, token: str) -> Caller | None:
        """By a token for our audience, or for the API server itself."""
        for audiences in ([AUDIENCE], None):
            spec = {"token": token} | ({"audiences": audiences} if audiences else {})
            status = self._ask(_REVIEWS, "authentication.k8s.io/v1", "TokenReview", spec)
            ours = audiences is None or AUDIENCE in (status.get("audiences") or ())
            user = status.get("user") or {}
            if status.get("authenticated") and ours and user.get("username"):
                return Caller(str(user["username"]), tuple(map(str, user.get("groups") or ())))
        return None

    def _may(self, caller: Caller, namespace: str) -> bool:
        attributes = {"group": "numakin.io", "resource": "affinitygroups", "verb": "list", "namespace": namespace}
        spec = {"user": caller.name, "groups": list(caller.groups), "resourceAttributes": attributes}
        return bool(self._ask(_ACCESS, "authorization.k8s.io/v1", "SubjectAccessReview", spec).get("allowed"))

    def _ask(self, path: str, version: str, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": version, "kind": kind, "spec": spec}
        status = self._api.request("POST", path, body=body).json().get("status")
        if not isinstance(status, dict):
            raise Unreachable(f"POST {path}: no {kind} came back")
        return status


class _Kept(Generic[Known]):
    """Answers by their question, the oldest forgotten first. Two threads may ask the same at once."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, tuple[float, Known]] = OrderedDict()

    def get(self, key: Hashable, ask: Callable[[], Known]) -> Known:
        kept = self._answers.get(key)
        if kept is not None and time.monotonic() - kept[0] < KNOWN_S:
            return kept[1]
        answer = ask()
        self._answers[key] = (time.monotonic(), answer)
        while len(self._answers) > KNOWN:
            self._answers.popitem(last=False)
        return answer
