"""JSON merge patches, applied as the API server does."""

from __future__ import annotations

from typing import Any


def patched(target: Any, patch: Any) -> Any:
    """JSON merge patch, RFC 7396; objects without content are left out, as the API server stores them."""
    if not isinstance(patch, dict):
        return patch
    after = dict(target) if isinstance(target, dict) else {}
    for key, change in patch.items():
        value = None if change is None else patched(after.get(key), change)
        if value is None or value == {}:
            after.pop(key, None)
        else:
            after[key] = value
    return after
