"""What a kubelet sends to the runtime of a pod's resources: of its sandbox and of each container (seen on 1.36).

A sandbox has the pod's own requests and limits or, of what these leave out, the sums of its containers' that are set. A
container without a limit of its own has the pod's, and where it has no request either, a request as large.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from numakin.placement.model.demand import quantity

Amounts = Mapping[str, Any]


class Sent(TypedDict):
    """CPUs and bytes; 0: not set. Options of `Runtime.run_pod` and `run_container`."""

    cpu_request: float
    cpu_limit: float
    memory_limit: int


def of_sandbox(spec: Mapping[str, Any]) -> Sent:
    """spec: of a v1.Pod, as the API server has filled it in."""
    own, containers = spec.get("resources") or {}, [each.get("resources") or {} for each in spec["containers"]]
    return Sent(
        cpu_request=_own_or_sum("cpu", own.get("requests"), (each.get("requests") for each in containers)),
        cpu_limit=_own_or_sum("cpu", own.get("limits"), (each.get("limits") for each in containers)),
        memory_limit=int(_own_or_sum("memory", own.get("limits"), (each.get("limits") for each in containers))),
    )


def of_container(spec: Mapping[str, Any], container: Mapping[str, Any]) -> Sent:
    """container: one of the spec's."""
    pods, resources = (spec.get("resources") or {}).get("limits"), container.get("resources") or {}
    limits = {**(pods or {}), **(resources.get("limits") or {})}
    request = (resources.get("requests") or {}).get("cpu")
    return Sent(
        cpu_request=float(quantity(str(request))) if request is not None else _amount("cpu", limits),
        cpu_limit=_amount("cpu", limits),
        memory_limit=int(_amount("memory", limits)),
    )


def _own_or_sum(name: str, own: Amounts | None, containers: Iterable[Amounts | None]) -> float:
    return _amount(name, own) if name in (own or {}) else sum(_amount(name, amounts) for amounts in containers)


def _amount(name: str, amounts: Amounts | None) -> float:
    return float(quantity(str((amounts or {}).get(name, "0"))))
