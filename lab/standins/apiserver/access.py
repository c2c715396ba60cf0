"""Who may do what: RBAC rules, as in a Role or ClusterRole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.model.requests import Request


class Access:
    """The rules granted to each user. Members of system:masters may do everything."""

    def __init__(self) -> None:
        self._rules: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}

    def grant(self, user: str, rules: Iterable[Mapping[str, Any]], namespace: str = "") -> None:
        self._rules.setdefault(user, []).extend((namespace, rule) for rule in rules)

    def check(self, request: Request) -> None:
        """Refused with 403 when no rule allows the request."""
        if "system:masters" in request.user.groups:
            return
        granted = self._rules.get(request.user.name, ())
        if not any(namespace in ("", request.namespace) and _allows(rule, request) for namespace, rule in granted):
            raise refusals.forbidden(
                request.user.name,
                request.verb,
                request.kind,
                subresource=request.subresource,
                namespace=request.namespace,
                name=request.name,
            )

    def review(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The status of a SubjectAccessReview about a resource as a whole."""
        asked = spec.get("resourceAttributes") or {}
        granted = self._rules.get(spec.get("user", ""), ())
        allowed = "system:masters" in (spec.get("groups") or ()) or any(
            namespace in ("", asked.get("namespace", "")) and _reviewed(rule, asked) for namespace, rule in granted
        )
        return {"allowed": allowed}


def _reviewed(rule: Mapping[str, Any], asked: Mapping[str, str]) -> bool:
    names = (("apiGroups", "group"), ("resources", "resource"), ("verbs", "verb"))
    return not rule.get("resourceNames") and all(
        _holds(rule.get(many, ()), asked.get(singular, "")) for many, singular in names
    )


def _allows(rule: Mapping[str, Any], request: Request) -> bool:
    resource = request.kind.plural + (f"/{request.subresource}" if request.subresource else "")
    names = rule.get("resourceNames")
    return (
        _holds(rule.get("apiGroups", ()), request.kind.group)
        and _holds(rule.get("resources", ()), resource)
        and _holds(rule.get("verbs", ()), request.verb)
        and (not names or request.name in names)
    )


def _holds(allowed: Iterable[str], value: str) -> bool:
    return value in allowed or "*" in allowed
