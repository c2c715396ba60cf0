"""What roles grant, and what was used of it, by the API server's audit log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ALLOWED = "allow"


class Right(NamedTuple):
    """group: of the API; empty for the core's. resource: with its subresource, as pods/status."""

    group: str
    resource: str
    verb: str


def roles_of(account: str, objects: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The Roles and ClusterRoles that are bound to a ServiceAccount."""
    objects = list(objects)
    bound = {
        (each["roleRef"]["kind"], each["roleRef"]["name"])
        for each in objects
        if each["kind"] in ("RoleBinding", "ClusterRoleBinding")
        and any(subject["name"] == account for subject in each["subjects"])
    }
    return [each for each in objects if (each["kind"], each["metadata"]["name"]) in bound]


def granted(roles: Iterable[dict[str, Any]]) -> set[Right]:
    return {
        Right(group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def requests(audit_log: Path, user: str) -> Iterator[dict[str, Any]]:
    """As the API server wrote them down."""
    for line in audit_log.read_text().splitlines():
        if line.endswith("}") and (event := json.loads(line))["user"]["username"] == user:
            yield event


def used(events: Iterable[dict[str, Any]]) -> set[Right]:
    """Server-side apply of what is not there yet is a patch that takes the right to create, too. What is asked of no
    resource (/apis) everybody may ask.
    """
    rights = set()
    for event in events:
        if (about := event.get("objectRef")) is None:
            continue
        resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
        verbs = {event["verb"]} | ({"create"} if event.get("responseStatus", {}).get("code") == 201 else set())
        rights |= {Right(about.get("apiGroup", ""), resource, verb) for verb in verbs}
    return rights


def refused(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    answered = [event for event in events if event["stage"] != "RequestReceived"]
    return [event for event in answered if event["annotations"].get("authorization.k8s.io/decision") != ALLOWED]
