"""Service account tokens: TokenRequest makes them, TokenReview checks them.

A token looks like a JSON web token and carries the claims of a real one, but its last part is no signature: what counts
is that this server made it.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.model.kinds import BUILT_IN, Kind
from lab.standins.apiserver.model.requests import Request, User
from lab.standins.apiserver.objects.pods import now_text
from lab.standins.apiserver.objects.store import Store, Stored

ISSUER = "https://kubernetes.default.svc"

_ACCOUNT = next(kind for kind in BUILT_IN if kind.kind == "ServiceAccount")
_NODE = next(kind for kind in BUILT_IN if kind.kind == "Node")
_EXTRA = "authentication.kubernetes.io/"


@dataclass(frozen=True)
class Token:
    """One token's claims. `bound` is the uid of the object that it is bound to, and that object's kind."""

    user: Mapping[str, Any]
    audiences: tuple[str, ...]
    expires: float
    bound: tuple[Kind, tuple[str, str], str] | None


class Tokens:
    """All tokens made, and the static ones."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._made: dict[str, Token] = {}
        self.static: dict[str, User] = {}
        self.names_nodes = True
        """Whether a pod's token says on which node it is, as from Kubernetes 1.30 on."""

    def request(self, request: Request) -> dict[str, Any]:
        """Answers a TokenRequest of no bound object."""
        body = request.json()
        spec = body.get("spec") or {}
        account = self._store.get(_ACCOUNT, (request.namespace, request.name))
        if account is None:
            raise refusals.not_found(_ACCOUNT, request.name)
        lifetime_s = spec.get("expirationSeconds", 3600)
        text = self.make(
            request.namespace, request.name, tuple(spec.get("audiences") or (ISSUER,)), lifetime_s=lifetime_s
        )
        metadata = {**account.object["metadata"], "creationTimestamp": now_text()}
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {name: metadata[name] for name in ("name", "namespace", "uid", "creationTimestamp")},
            "spec": {"audiences": [ISSUER], "expirationSeconds": lifetime_s, **spec},
            "status": {"token": text, "expirationTimestamp": now_text()},
        }

    def make(
        self,
        namespace: str,
        account: str,
        audiences: tuple[str, ...],
        *,
        bound: tuple[Kind, Stored] | None = None,
        lifetime_s: float = 3600,
    ) -> str:
        """A token of a service account, bound to a pod or node."""
        jti = str(uuid.uuid4())
        extra = {f"{_EXTRA}credential-id": [f"JTI={jti}"], **(self._extra(*bound) if bound else {})}
        user = {
            "username": f"system:serviceaccount:{namespace}:{account}",
            "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{namespace}/{account}")),
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
            "extra": extra,
        }
        expires = time.time() + lifetime_s
        claims = {"aud": audiences, "exp": int(expires), "iss": ISSUER, "jti": jti, "sub": user["username"]}
        text = ".".join((_part({"alg": "RS256", "kid": "standin"}), _part(claims), _part({"not": "a signature"})))
        lives_with = None
        if bound:
            metadata = bound[1].object["metadata"]
            lives_with = (bound[0], (metadata.get("namespace", ""), metadata["name"]), metadata["uid"])
        self._made[text] = Token(user, audiences, expires, lives_with)
        return text

    def review(self, request: Request) -> dict[str, Any]:
        """Answers a TokenReview: 201 whatever the token is worth; a bad one has an error and no `authenticated`."""
        body = request.json()
        spec = body.get("spec") or {}
        if not spec.get("token"):
            raise refusals.bad_request("token is required for TokenReview in authentication")
        return {
            "kind": "TokenReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {},
            "spec": spec,
            "status": self._status(spec["token"], tuple(spec.get("audiences") or (ISSUER,))),
        }

    def user(self, text: str) -> User | None:
        """The user who authenticates to the API server with this token."""
        if text in self.static:
            return self.static[text]
        made = self._made.get(text)
        if made is None or ISSUER not in made.audiences or self._dead(made):
            return None
        return User(made.user["username"], tuple(made.user["groups"]))

    def _status(self, text: str, asked: tuple[str, ...]) -> dict[str, Any]:
        static = self.static.get(text)
        if static is not None and ISSUER in asked:
            user = {"username": static.name, "uid": static.name, "groups": list(static.groups)}
            return {"authenticated": True, "user": user, "audiences": [ISSUER]}
        made = self._made.get(text)
        if made is None:
            return {"user": {}, "error": "invalid bearer token"}
        dead = self._dead(made)
        if dead:
            return {"user": {}, "error": f"[invalid bearer token, {dead}]"}
        both = [audience for audience in asked if audience in made.audiences]
        if not both:
            why = f"token audiences {_listed(made.audiences)} is invalid for the target audiences {_listed(asked)}"
            return {"user": {}, "error": f"[invalid bearer token, {why}]"}
        return {"authenticated": True, "user": made.user, "audiences": both}

    def _dead(self, made: Token) -> str:
        if time.time() > made.expires:
            return "service account token has expired"
        if made.bound is None:
            return ""
        kind, name, uid = made.bound
        stored = self._store.get(kind, name)
        alive = stored is not None and stored.object["metadata"]["uid"] == uid
        return "" if alive else "service account token has been invalidated"

    def _extra(self, kind: Kind, stored: Stored) -> dict[str, list[str]]:
        metadata = stored.object["metadata"]
        if kind is _NODE:
            return {f"{_EXTRA}node-name": [metadata["name"]], f"{_EXTRA}node-uid": [metadata["uid"]]}
        extra = {f"{_EXTRA}pod-name": [metadata["name"]], f"{_EXTRA}pod-uid": [metadata["uid"]]}
        node = stored.object["spec"].get("nodeName")
        if node and self.names_nodes:
            extra[f"{_EXTRA}node-name"] = [node]
            known = self._store.get(_NODE, ("", node))
            extra |= {f"{_EXTRA}node-uid": [known.object["metadata"]["uid"]]} if known else {}
        return extra


def _listed(audiences: tuple[str, ...]) -> str:
    return "[" + " ".join(f'"{audience}"' for audience in audiences) + "]"


def _part(body: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("=")
