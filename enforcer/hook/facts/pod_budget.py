"""Whether a pod has resources of its own (`spec.resources`), by what the runtime shows of its sandbox and containers.

NRI carries neither requests nor the pod's spec, but what the kubelet made of them: CPU shares, quota and memory limit
of the sandbox (`pod_resources`) and of each container. The kubelet has, seen on 1.36.2 with containerd 2.3.4:

- of a pod without resources of its own the sandbox has the sums of those requests and limits that its containers set,
  so the limits of the containers that run together are never more than the sandbox's;
- of a pod with a limit of its own each container that sets none is given the pod's: the same quota, and the same shares
  where it has no request either, and the same memory limit.

So **a limit is the pod's own where a container has the very same one, and all containers' together are more**. From
that follows what each container asks for by itself: nothing, where it was given the pod's limit and the shares that
belong to it; whole CPUs of its own, where its request equals its own limit.

Compared is what containers were created with: a resize in place changes them, and the sandbox's only where the runtime
carries that (UpdatePodSandbox, NRI 0.10). Not seen by this, and taken for a sum until the extender sends the pod's
spec: the first container alone; a pod with requests of its own and no limits (its sandbox's request counts all the
same); and every pod where the runtime leaves `pod_resources` out. The other way round, a container that was resized to
exactly what its pod had in all, before this process knew it, looks like one that was given the pod's limit: until the
extender's facts come, its pod counts as it was created.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from numakin.placement.model.demand import Demand, PodBudget


class ResourceSettings(NamedTuple):
    """cpu: the request in millicores. cpu_limit: millicores, memory_limit: bytes; None: none."""

    cpu: int = 0
    cpu_limit: int | None = None
    memory_limit: int | None = None


class Own(NamedTuple):
    """What the pod has of its own. given: the containers, by name, that were given its CPU limit. budget: None where
    its CPU is its containers'. memory: whether its memory limit is its own.
    """

    budget: PodBudget | None = None
    given: frozenset[str] = frozenset()
    memory: bool = False


NOTHING = Own()


def own_resources(pod: ResourceSettings, containers: Mapping[str, ResourceSettings]) -> Own:
    """pod: its sandbox's. containers: those that run, by name, as they were created."""
    memory = _is_own(pod.memory_limit, [container.memory_limit for container in containers.values()])
    if not _is_own(pod.cpu_limit, [container.cpu_limit for container in containers.values()]):
        return Own(memory=memory)
    given = frozenset(name for name, container in containers.items() if container.cpu_limit == pod.cpu_limit)
    slices = {
        name: container.cpu // 1000
        for name, container in containers.items()
        if name not in given and container.cpu == container.cpu_limit and not container.cpu % 1000
    }
    return Own(PodBudget.of(pod.cpu, slices), given, memory)


def asked_by_itself(pod: ResourceSettings, container: ResourceSettings) -> int:
    """Millicores, of a container that was given the pod's limit, from which the kubelet made its shares if it has no
    request.
    """
    return 0 if container.cpu == container.cpu_limit == pod.cpu_limit else container.cpu


def resized_with(
    total: Demand, pod: Demand, own: Own, live: Mapping[str, tuple[ResourceSettings, ResourceSettings]]
) -> Demand:
    """What a pod with resources of its own asks for. total: as if these were its containers' sums. pod: its sandbox's.
    live: of its containers what they were created with, and what they have now: where the runtime does not say that the
    pod was resized, those that were given its limits show it.
    """
    if own.budget is not None:
        now = [after.cpu_limit for name, (_, after) in live.items() if name in own.given and after.cpu_limit]
        given = next(before.cpu_limit for name, (before, _) in live.items() if name in own.given)
        total = replace(total, cpu_milli=_after(pod.cpu_milli, given, max(now, default=given)))
    if own.memory and pod.memory_limit is not None:
        limits = [after.memory_limit for before, after in live.values() if before.memory_limit == pod.memory_limit]
        memory = max((limit for limit in limits if limit), default=pod.memory_limit)
        total = replace(total, memory=memory, memory_limit=memory)
    return total


def _after(request: int, limit: int | None, now: int | None) -> int:
    """The request beside a limit that was resized: as large as that where it was, else below it."""
    if limit is None or now is None or limit == now:
        return request
    return now if request == limit else min(request, now)


def _is_own(limit: int | None, parts: list[int | None]) -> bool:
    if not limit:
        return False
    return limit in parts and sum(part or 0 for part in parts) > limit
