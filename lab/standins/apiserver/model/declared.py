"""The fields of the built-in kinds, as Kubernetes publishes them: kubernetes-validate's copy of its OpenAPI, strict.

Each definition becomes a schema as a custom resource's is (schema.py), with its references replaced by what they refer
to; a schema that refers to itself, as JSONSchemaProps does, is then a circle.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from lab.standins.apiserver.model.kinds import Kind
from lab.standins.apiserver.model.schema import FREE, Schema

VERSION = "v1.36.0"

_REFERENCE = "#/$defs/"
_UNTYPED = ("JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool")
"""Published without a type. The real server silently drops what it doesn't know below them; here it is refused,
since it can only be a mistake."""


@functools.cache
def schema_of(kind: Kind) -> Schema:
    """KeyError when Kubernetes has no such kind."""
    return _by_kind()[kind.group, kind.version, kind.kind]


@functools.cache
def _by_kind() -> dict[tuple[str, str, str], Schema]:
    folder = resources.files("kubernetes_validate") / "kubernetes-json-schema" / f"{VERSION}-local-strict"
    definitions: dict[str, Any] = json.loads((folder / "_definitions.json").read_text())["$defs"]
    schemas: dict[str, dict[str, Any]] = {name: {} for name in definitions}
    (described,) = (name for name in definitions if name.endswith(".JSONSchemaProps"))
    for name, definition in definitions.items():
        schemas[name] |= _linked(definition, schemas)
    for name, made in schemas.items():
        if name.rpartition(".")[2] in _UNTYPED:
            made.pop("x-kubernetes-preserve-unknown-fields")
            made["properties"] = schemas[described]["properties"]
            made["items"] = schemas[described]
    return {
        (known["group"], known["version"], known["kind"]): schemas[name]
        for name, definition in definitions.items()
        for known in definition.get("x-kubernetes-group-version-kind", ())
    }


def _linked(node: Mapping[str, Any], schemas: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    if "$ref" in node:
        return schemas[node["$ref"].removeprefix(_REFERENCE)]
    made = {name: value for name, value in node.items() if name not in ("description", "type")}
    allowed = node.get("type", [])
    types = [name for name in ([allowed] if isinstance(allowed, str) else allowed) if name != "null"]
    if types:
        made |= {"type": types[0], "nullable": isinstance(allowed, list)}
    for name in ("items", "additionalProperties"):
        if isinstance(node.get(name), Mapping):
            made[name] = _linked(node[name], schemas)
    if "properties" in node:
        made["properties"] = {
            name: _linked(property_schema, schemas) for name, property_schema in node["properties"].items()
        }
    elif "additionalProperties" not in node:
        made |= FREE
    return made
