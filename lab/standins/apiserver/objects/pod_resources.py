"""What the API server does with a pod's own resources (`spec.resources`, KEP-2837): defaults and refusals, those of
Kubernetes 1.34 to 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from lab.standins.apiserver.model.schema import Cause

_SUFFIXES = {"m": Decimal("0.001"), "k": Decimal(1000), "M": Decimal(10) ** 6, "G": Decimal(10) ** 9} | {
    f"{prefix}i": Decimal(1024) ** power for power, prefix in enumerate("KMGT", start=1)
}


def filled_in(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Of a pod with limits the requests that it leaves out: its containers' sum or, where none asks for any, the limit.
    Without limits nothing is filled in.
    """
    resources = spec["resources"]
    limits = resources.get("limits") or {}
    if not limits:
        return dict(resources)
    summed = {name: text for name, text in _sums(spec).items() if _is_supported(name) and not _is_hugepages(name)}
    return {**resources, "requests": {**limits, **summed, **(resources.get("requests") or {})}}


def violations(spec: Mapping[str, Any]) -> list[Cause]:
    """What is wrong with a pod's own resources, once filled in."""
    return list(_violations(spec))


def _violations(spec: Mapping[str, Any]) -> Iterator[Cause]:
    resources, path = spec["resources"], "spec.resources"
    if resources.get("claims"):
        yield "FieldValueForbidden", "Forbidden: claims may not be set for Resources at pod-level", f"{path}.claims"
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for kind, amounts in (("requests", requests), ("limits", limits)):
        for name in amounts:
            if not _is_supported(name):
                message = f'Unsupported value: "{name}": supported values: "cpu", "memory"'
                yield "FieldValueNotSupported", message, f"{path}.{kind}[{name}]"
    for name, text in requests.items():
        if name in limits and _amount(text) > _amount(limits[name]):
            message = f'Invalid value: "{text}": must be less than or equal to {name} limit of {limits[name]}'
            yield "FieldValueInvalid", message, f"{path}.requests"
    for name, text in _sums(spec).items():
        if name in requests and _amount(text) > _amount(requests[name]):
            asked = f'Invalid value: "{requests[name]}"'
            message = f"{asked}: must be greater than or equal to aggregate container requests of {text}"
            yield "FieldValueInvalid", message, f"{path}.requests[{name}]"
    for container in spec.get("containers") or ():
        for name, text in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and _amount(text) > _amount(limits[name]):
                message = f'Invalid value: "{text}": must be less than or equal to pod limits of {limits[name]}'
                yield "FieldValueInvalid", message, f"{path}.limits[{name}]"


def _sums(spec: Mapping[str, Any]) -> dict[str, str]:
    """What the containers and sidecars request together, by resource."""
    lasting = [
        *(spec.get("containers") or ()),
        *(init for init in spec.get("initContainers") or () if init.get("restartPolicy") == "Always"),
    ]
    sums: dict[str, Decimal] = {}
    for container in lasting:
        for name, text in ((container.get("resources") or {}).get("requests") or {}).items():
            sums[name] = sums.get(name, Decimal(0)) + _amount(text)
    return {name: _written(name, amount) for name, amount in sums.items()}


def _is_supported(name: str) -> bool:
    return name in {"cpu", "memory"} or _is_hugepages(name)


def _is_hugepages(name: str) -> bool:
    return name.startswith("hugepages-")


def _amount(text: object) -> Decimal:
    written = str(text)
    suffix = next((each for each in sorted(_SUFFIXES, key=len, reverse=True) if written.endswith(each)), "")
    return Decimal(written.removesuffix(suffix)) * _SUFFIXES.get(suffix, Decimal(1))


def _written(name: str, amount: Decimal) -> str:
    """Canonical as far as it is needed: whole numbers, thousandths of a CPU, the largest binary suffix."""
    if amount != amount.to_integral_value():
        return f"{int(amount * 1000)}m"
    if name == "cpu" or not amount:
        return str(int(amount))
    for suffix in ("Ti", "Gi", "Mi", "Ki"):
        if not amount % _SUFFIXES[suffix]:
            return f"{int(amount / _SUFFIXES[suffix])}{suffix}"
    return str(int(amount))
