"""Objects held to the schema of their CustomResourceDefinition, as the API server does strictly: unknown fields are errors."""

from __future__ import annotations

from typing import Any

import jsonschema

OPEN = "x-kubernetes-preserve-unknown-fields"
OF_EVERY_OBJECT = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object", OPEN: True},
}


def violations(schema: dict[str, Any], value: Any) -> list[str]:
    return [
        f"{error.json_path}: {error.message}" for error in jsonschema.Draft7Validator(closed(schema)).iter_errors(value)
    ]


def of_object(schema: dict[str, Any]) -> dict[str, Any]:
    """Of a whole object: apiVersion, kind and metadata are declared by the API itself."""
    return {**schema, "properties": {**schema.get("properties", {}), **OF_EVERY_OBJECT}}


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    made = {name: closed(part) if name in ("items", "additionalProperties") else part for name, part in schema.items()}
    if "properties" in schema:
        made["properties"] = {name: closed(part) for name, part in schema["properties"].items()}
    if schema.get("type") == "object" and OPEN not in schema:
        made.setdefault("additionalProperties", False)
    return made
