"""Structural schemas of custom resources: what server-side apply, validation, pruning and defaulting ask of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
Cause = tuple[str, str, str]
"""(reason, message, field), as in a Status' details.causes."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_TOLD = {dict: "object", list: "list", str: "string", int: "integer", float: "number", bool: "boolean"}
_EXPECTED = {"integer": "numeric (int or float)", "number": "numeric (int or float)", "object": "map", "array": "list"}

FREE: Schema = {"x-kubernetes-preserve-unknown-fields": True}
"""The schema of what is not described: metadata, and everything under an object that preserves unknown fields."""


def child(schema: Schema, name: str) -> Schema | None:
    """The schema of a field; None when it is not declared."""
    if name in schema.get("properties", {}):
        declared: Schema = schema["properties"][name]
        return declared
    extra = schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        return extra
    return FREE if extra or schema.get("x-kubernetes-preserve-unknown-fields") else None


def map_keys(schema: Schema) -> list[str]:
    """The keys that identify a list's items; empty when the list is atomic (or a set)."""
    return list(schema["x-kubernetes-list-map-keys"]) if schema.get("x-kubernetes-list-type") == "map" else []


def untyped(schema: Schema, value: Any, path: str = "") -> str:
    """Why server-side apply cannot type the value: the first wrong type, undeclared field or repeated list key. Empty
    when it can.
    """
    wrong = _wrong_type(schema, value)
    if wrong:
        return f"{path}: expected {_EXPECTED.get(schema['type'], schema['type'])}, got {wrong}"
    if isinstance(value, dict):
        return next(filter(None, (_untyped_field(schema, name, inner, path) for name, inner in value.items())), "")
    if isinstance(value, list):
        seen: set[tuple[Any, ...]] = set()
        for item in value:
            key = tuple(item.get(map_key) for map_key in map_keys(schema))
            if key and key in seen:
                shown = ",".join(f'{name}="{part}"' for name, part in zip(map_keys(schema), key, strict=True))
                return f"{path}: duplicate entries for key [{shown}]"
            seen.add(key)
        return next(filter(None, (untyped(schema.get("items", FREE), item, path) for item in value)), "")
    return ""


def _untyped_field(schema: Schema, name: str, value: Any, path: str) -> str:
    below = child(schema, name)
    return f"{path}.{name}: field not declared in schema" if below is None else untyped(below, value, f"{path}.{name}")


def _wrong_type(schema: Schema, value: Any) -> str:
    expected = schema.get("type")
    if expected is None or schema.get("x-kubernetes-int-or-string") or (value is None and schema.get("nullable")):
        return ""
    right = isinstance(value, _TYPES[expected]) and (expected == "boolean" or not isinstance(value, bool))
    return "" if right else _TOLD.get(type(value), "null")


def violations(schema: Schema, value: Any, path: str = "") -> list[Cause]:
    """What validation finds: types, required fields, enums, bounds and patterns."""
    wrong = _wrong_type(schema, value)
    if wrong:
        message = f'Invalid value: "{wrong}": {path} in body must be of type {schema["type"]}: "{wrong}"'
        return [("FieldValueTypeInvalid", message, path)]
    causes = list(_own_violations(schema, value, path))
    if isinstance(value, dict):
        missing = [name for name in schema.get("required", ()) if name not in value]
        causes += [("FieldValueRequired", "Required value", _under(path, name)) for name in missing]
        for name, inner in value.items():
            below = child(schema, name)
            causes += violations(below, inner, _under(path, name)) if below else []
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            causes += violations(schema.get("items", FREE), inner, f"{path}[{at}]")
    return causes


def _own_violations(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(f'"{choice}"' for choice in schema["enum"])
        yield "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {allowed}', path
    for bound, holds, words in _BOUNDS:
        if bound in schema and not holds(value, schema[bound]):
            shown = (
                f'"{value}"' if isinstance(value, str) else value if not isinstance(value, (list, dict)) else len(value)
            )
            yield "FieldValueInvalid", f"Invalid value: {shown}: {path} in body should {words} {schema[bound]}", path
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        pattern = schema["pattern"]
        yield "FieldValueInvalid", f"Invalid value: \"{value}\": {path} in body should match '{pattern}'", path


_BOUNDS: tuple[tuple[str, Callable[[Any, Any], bool], str], ...] = (
    ("minimum", lambda value, bound: value >= bound, "be greater than or equal to"),
    ("maximum", lambda value, bound: value <= bound, "be less than or equal to"),
    ("minLength", lambda value, bound: len(value) >= bound, "be at least"),
    ("maxLength", lambda value, bound: len(value) <= bound, "be at most"),
    ("maxItems", lambda value, bound: len(value) <= bound, "have at most"),
    ("maxProperties", lambda value, bound: len(value) <= bound, "have at most"),
)


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def pruned(schema: Schema, value: Any, path: str = "") -> tuple[Any, list[str]]:
    """The value without its undeclared fields, and their paths."""
    if isinstance(value, list):
        both = [pruned(schema.get("items", FREE), item, f"{path}[{at}]") for at, item in enumerate(value)]
        return [item for item, _ in both], [name for _, names in both for name in names]
    if not isinstance(value, dict):
        return value, []
    kept, dropped = {}, []
    for name, inner in value.items():
        below = child(schema, name)
        if below is None:
            dropped.append(_under(path, name))
        else:
            kept[name], more = pruned(below, inner, _under(path, name))
            dropped += more
    return kept, dropped


def defaulted(schema: Schema, value: Any) -> Any:
    """The value with the schema's defaults for absent fields."""
    if isinstance(value, list):
        return [defaulted(schema.get("items", FREE), item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = {name: defaulted(child(schema, name) or FREE, inner) for name, inner in value.items()}
    for name, below in schema.get("properties", {}).items():
        if name not in filled and "default" in below:
            filled[name] = below["default"]
    return filled


def of_object(schema: Schema) -> Schema:
    """The schema of a whole object: apiVersion, kind and metadata are declared by the API itself."""
    known = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {**FREE, "type": "object"}}
    return {**schema, "properties": {**schema.get("properties", {}), **known}}
