"""Pods as placement reads them: no environment, no image, no other label or annotation.

Whole templates of many replicas would be more than the extender takes at once, and are not to be recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numakin.placement.model.workload import HASH_LABELS
from numakin.placement.optin.parsing import is_read

METADATA = ("name", "namespace", "uid", "creationTimestamp")
SPEC = ("nodeName", "hostNetwork", "priority")
TERMS = ("nodeSelector", "tolerations")
STATUS = ("phase", "podIP")


def lean(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a v1.Pod. What is no pod is left whole: the extender says what is wrong with it."""
    try:
        return _lean(pod)
    except (AttributeError, TypeError, KeyError):
        return pod


def with_terms(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """`lean`, with what the pod says of nodes."""
    try:
        spec, made = pod["spec"], _lean(pod)
        terms = _picked(spec, TERMS)
        if node_affinity := (spec.get("affinity") or {}).get("nodeAffinity"):
            terms["affinity"] = {"nodeAffinity": node_affinity}
        return {**made, "spec": {**made["spec"], **terms}}
    except (AttributeError, TypeError, KeyError):
        return pod


def _lean(pod: Mapping[str, Any]) -> dict[str, Any]:
    metadata, spec = pod["metadata"], pod["spec"]
    fields: dict[str, Any] = _picked(metadata, METADATA)
    fields["annotations"] = {key: value for key, value in (metadata.get("annotations") or {}).items() if is_read(key)}
    fields["labels"] = {key: value for key, value in (metadata.get("labels") or {}).items() if key in HASH_LABELS}
    if owners := metadata.get("ownerReferences"):
        fields["ownerReferences"] = [_picked(owner, ("kind", "name", "uid", "controller")) for owner in owners]
    wanted = _picked(spec, SPEC) | _resources(spec)
    for part in ("initContainers", "containers"):
        if spec.get(part):
            wanted[part] = [_picked(each, ("name", "restartPolicy")) | _resources(each) for each in spec[part]]
    return {"metadata": fields, "spec": wanted, "status": _picked(pod.get("status") or {}, STATUS)}


def _resources(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"resources": _picked(of["resources"], ("requests", "limits"))} if of.get("resources") else {}


def _picked(entry: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """AttributeError for what is no object."""
    there = entry.keys()
    return {key: entry[key] for key in keys if key in there}
