"""What is wrong with a CustomResourceDefinition, in the real server's words: its name, its versions, and its schemas,
which must be structural.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lab.standins.apiserver.model.schema import Cause, Schema

KIND = "CustomResourceDefinition"

_TYPED = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
"""Each may stand in a type's place."""


def violations(definition: Mapping[str, Any]) -> list[Cause]:
    """Of a definition whose fields and their types are right."""
    return [*_names(definition), *_versions(definition["spec"]["versions"])]


def _names(definition: Mapping[str, Any]) -> Iterator[Cause]:
    spec, name = definition["spec"], definition["metadata"].get("name", "")
    if name != f"{spec['names']['plural']}.{spec['group']}":
        message = f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        yield "FieldValueInvalid", message, "metadata.name"
    approval = "api-approved.kubernetes.io"
    protected = spec["group"].endswith((".k8s.io", ".kubernetes.io"))
    if protected and approval not in (definition["metadata"].get("annotations") or {}):
        message = (
            f'Required value: protected groups must have approval annotation "{approval}", '
            "see https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield "FieldValueRequired", message, f"metadata.annotations[{approval}]"


def _versions(versions: list[Mapping[str, Any]]) -> Iterator[Cause]:
    if sum(version["storage"] for version in versions) != 1:
        message = "Invalid value: must have exactly one version marked as storage version"
        yield "FieldValueInvalid", message, "spec.versions"
    for at, version in enumerate(versions):
        path = f"spec.versions[{at}].schema.openAPIV3Schema"
        whole = (version.get("schema") or {}).get("openAPIV3Schema")
        if whole is None:
            yield "FieldValueRequired", "Required value: schemas are required", path
        else:
            yield from _structural(whole, path, "at the root")


def _structural(schema: Schema, path: str, where: str) -> Iterator[Cause]:
    """Every field has a type, every list declares its items, and a map's keys are there in each item."""
    if not schema.get("type") and not any(schema.get(keyword) for keyword in _TYPED):
        yield "FieldValueRequired", f"Required value: must not be empty {where}", f"{path}.type"
    for name, below in schema.get("properties", {}).items():
        yield from _structural(below, f"{path}.properties[{name}]", "for specified object fields")
    extra = schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        yield from _structural(extra, f"{path}.additionalProperties", "for specified object fields")
    items = schema.get("items")
    if isinstance(items, Mapping):
        yield from _structural(items, f"{path}.items", "for specified array items")
        yield from _keys(schema, items, path)
    elif schema.get("type") == "array":
        yield "FieldValueRequired", "Required value: must be specified", f"{path}.items"


def _keys(schema: Schema, items: Schema, path: str) -> Iterator[Cause]:
    if schema.get("x-kubernetes-list-type") != "map":
        return
    for key in schema.get("x-kubernetes-list-map-keys", ()):
        declared = items.get("properties", {}).get(key)
        if declared is None:
            message = f'Invalid value: "{key}": entries must all be names of item properties'
            yield "FieldValueInvalid", message, f"{path}.x-kubernetes-list-map-keys"
        elif key not in items.get("required", ()) and "default" not in declared:
            message = (
                "Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a "
                "required property"
            )
            yield "FieldValueRequired", message, f"{path}.items.properties[{key}].default"
