"""What is changed in a Deployment for each way, and what restores it, as JSON merge patches.

All that restores a Deployment is kept in an annotation of its own until it is restored, so that a comparison that was
killed can be undone from anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numakin.compare.design import Design
from numakin.placement.optin.parsing import DOMAIN

WITH, WITHOUT, AGAIN = "with numakin", "without", "without again"
"""`without again` is the control: the same as `without`, so that any difference between the two is noise."""

DESIGN = Design((WITH, WITHOUT, AGAIN), pairs=((WITH, WITHOUT),), control=(AGAIN, WITHOUT))

GROUP = f"group.{DOMAIN}"

WAY = "numakin-compare"
"""Annotation of pods: which way they run. It makes `without again` a rollout of its own."""

UNDO = "numakin-compare-undo"
"""Annotation of the Deployment: how it was, while it is compared."""

DEFAULT_HISTORY = 10
"""revisionHistoryLimit where a Deployment does not say it."""

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the Deployments, by name."""

    name: str


WAYS = tuple(map(Variant, DESIGN.ways))


def annotations_of(deployment: Manifest) -> dict[str, str]:
    """Of its pods."""
    return dict(deployment["spec"]["template"].get("metadata", {}).get("annotations") or {})


def group_of(deployment: Manifest) -> str | None:
    """That its pods have by annotation, or some of their containers."""
    return _group_in(annotations_of(deployment))


def way_of(deployment: Manifest) -> str | None:
    """Which way its template runs now; None while it is not compared."""
    return annotations_of(deployment).get(WAY)


def begun(deployment: Manifest) -> Manifest:
    """The patch that begins a comparison: it remembers how the Deployment was, and holds its history of revisions, of
    which each way adds one.
    """
    own = {key: text for key, text in annotations_of(deployment).items() if _of_numakin(key)}
    limit = deployment["spec"].get("revisionHistoryLimit", DEFAULT_HISTORY)
    undo = {"annotations": {GROUP: None, WAY: None} | own, "revisionHistoryLimit": limit}
    undo["replicas"] = deployment["spec"].get("replicas")
    return {"metadata": {"annotations": {UNDO: json.dumps(undo)}}, "spec": {"revisionHistoryLimit": limit + len(WAYS)}}


def changed(deployment: Manifest, way: str, group: str) -> Manifest:
    """The patch after which its pods run this way. deployment: after `begun`. group: for one that has none."""
    before = _undo(deployment)["annotations"]
    own = {key: text for key, text in before.items() if _of_numakin(key)}
    if way != WITH:
        own = dict.fromkeys(own)
    elif _group_in(own) is None:
        own[GROUP] = group
    return _template({**own, WAY: way})


def restored(deployment: Manifest) -> Manifest:
    """The patch after which its pods are as they were."""
    return _template(_undo(deployment)["annotations"])


def ended(deployment: Manifest) -> Manifest:
    """The patch after which nothing is left of the comparison; once the revisions of the ways are deleted."""
    limit = _undo(deployment)["revisionHistoryLimit"]
    return {"metadata": {"annotations": {UNDO: None}}, "spec": {"revisionHistoryLimit": limit}}


def is_compared(deployment: Manifest) -> bool:
    """Whether it was not restored yet."""
    return UNDO in (deployment["metadata"].get("annotations") or {})


def is_scaled(deployment: Manifest) -> bool:
    """Whether it has more or fewer replicas than when its comparison began: the ways would not be alike."""
    return bool(deployment["spec"].get("replicas") != _undo(deployment)["replicas"])


def selector_of(deployment: Manifest) -> str:
    """The label selector of its pods, as the API server takes it in a query."""
    selector = deployment["spec"]["selector"]
    equal = [f"{key}={text}" for key, text in (selector.get("matchLabels") or {}).items()]
    return ",".join([*equal, *map(_requirement, selector.get("matchExpressions") or ())])


def group_for(deployments: Mapping[str, Manifest]) -> str:
    """For those without a group: that of the first that has one, else the first's name."""
    groups = map(group_of, deployments.values())
    return next((group for group in groups if group), next(iter(deployments)))


def _group_in(annotations: Mapping[str, str | None]) -> str | None:
    return next((text for key, text in sorted(annotations.items()) if text and key.partition("/")[0] == GROUP), None)


def _requirement(expression: Manifest) -> str:
    key, operator, values = expression["key"], expression["operator"], ",".join(expression.get("values") or ())
    plain = {"Exists": key, "DoesNotExist": f"!{key}"}
    return plain.get(operator) or f"{key} {operator.lower()} ({values})"


def _of_numakin(key: str) -> bool:
    return key.partition("/")[0].endswith(f".{DOMAIN}")


def _undo(deployment: Manifest) -> Manifest:
    return dict(json.loads(deployment["metadata"]["annotations"][UNDO]))


def _template(annotations: Mapping[str, str | None]) -> Manifest:
    return {"spec": {"template": {"metadata": {"annotations": dict(annotations)}}}}
