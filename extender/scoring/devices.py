"""The devices that a pod will get on a node, before the kubelet has given it any: what those are near to that are free.

The kubelet chooses them as it admits the pod, and the enforcer then places the pod near them. So to predict its place,
each device that it asks for counts as near to the NUMA nodes that have one left. Of a resource that the node's enforcer
does not report nothing is known, and nothing said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from extender.state.pods import PodRow
from numakin.placement.decide.request import Kin, Request
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.live_usage import Devices, Live
from numakin.placement.optin.options import Policy, Scope

MOST_ALIKE = 16
"""Devices of one resource that count, as of those that a container has got (`enforcer.observer.podresources`)."""


def expected(request: Request, pod: PodRow, live: Live, kin: Kin) -> Request:
    """The request with the devices that it will probably get; where a group begins, with those that its other pods will
    ask for as well, so that they find some: no policy of this pod's own is judged by these.
    """
    awaited = kin.devices if request.opt_in.policy is Policy.BEST_EFFORT else ()
    if not live.devices or not (pod.devices or awaited):
        return request
    own = pod.devices if request.opt_in.scope is Scope.POD else pod.devices_of(request.name)
    near = tuple(_near(live, together(own, awaited)))
    return replace(request, devices=near) if near != request.devices else request


def together(own: Devices, awaited: Devices) -> Devices:
    return tuple(sorted((Counter(dict(own)) + Counter(dict(awaited))).items())) if awaited else own


def reported(live: Live, devices: Devices) -> bool:
    """Whether the node says anything of one of these resources."""
    asked = {resource for resource, _ in devices}
    return any(resource in asked for resource, _ in live.devices)


def lacking(live: Live, pod: PodRow, kin: Kin, home: NumaSet) -> int:
    """How many devices the pod, and those to come of a group that begins, would find near to none of these NUMA nodes.
    Those count too that the node has not got at all beside what is held for others; of what the group will ask for,
    also those that it says nothing of.
    """
    asked, left = together(pod.devices, kin.devices), Counter[str]()
    for (resource, _), free in live.devices.items():
        left[resource] += free
    far = sum(not near & home for near in _near(live, asked) if near)
    unsaid = sum(min(count, MOST_ALIKE) for resource, count in kin.devices if resource not in left)
    known = ((min(count, MOST_ALIKE), left[resource]) for resource, count in asked if resource in left)
    return far + unsaid + sum(max(0, count - free) for count, free in known)


def _near(live: Live, devices: Devices) -> Iterator[NumaSet]:
    """For each device the NUMA nodes near to which it may be had; empty where that is any, or nowhere."""
    for resource, count in devices:
        anywhere, by_node = _free(live, resource)
        for number in range(1, min(count, MOST_ALIKE) + 1):
            yield NumaSet.of(node for node, free in by_node.items() if free + anywhere >= number > anywhere)


def _free(live: Live, resource: str) -> tuple[int, Mapping[int, int]]:
    """How many are near to nothing known, and near to each NUMA node."""
    anywhere, by_node = 0, Counter[int]()
    for (name, mask), free in live.devices.items():
        if name != resource:
            continue
        anywhere += free if not mask else 0
        for node in NumaSet(mask):
            by_node[node] += free
    return anywhere, by_node
