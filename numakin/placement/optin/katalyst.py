"""Katalyst's QoS annotations, for pods that come from it: understood once a pod opts in with `group.numakin.io`.

They are never an opt-in by themselves: a cluster where Katalyst still runs has them on every pod, and two owners of one
cpuset fail containers. Our own keys beat them. The levels (kubewharf/katalyst-api, pkg/consts/qos.go) map as follows:

  dedicated_cores  exclusive CPUs (`cpus.numakin.io: exclusive`)
  shared_cores     the NUMA node's shared pool, as without the annotation
  reclaimed_cores  what the shared pool's requests leave over; shrinks first, and its CPU requests hold no room
  system_cores     the operator's reserved CPUs
  numa_binding     `memory.numakin.io: bind`
  numa_exclusive   no other opted-in pod on its NUMA nodes, reclaimed ones aside
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from numakin.placement.optin.options import AnnotationProblem, BadValue, Cpus, Memory, Pool

QOS_KEY = "katalyst.kubewharf.io/qos_level"
MEMORY_KEY = "katalyst.kubewharf.io/memory_enhancement"
KEYS = (QOS_KEY, MEMORY_KEY)

_LEVELS: Mapping[str, Mapping[str, object]] = {
    "dedicated_cores": {"cpus": Cpus.EXCLUSIVE},
    "shared_cores": {},
    "reclaimed_cores": {"pool": Pool.RECLAIMED},
    "system_cores": {"pool": Pool.RESERVED},
}
_BINDING, _EXCLUSIVE = "numa_binding", "numa_exclusive"
_SWITCH = {"true": True, "false": False}


def read(annotations: Mapping[str, str]) -> tuple[dict[str, object], list[AnnotationProblem]]:
    """What an opted-in pod's Katalyst annotations ask for, as fields of OptIn, and those that say nothing we know."""
    fields: dict[str, object] = {}
    problems = []
    for key, reader in ((QOS_KEY, _level), (MEMORY_KEY, _memory)):
        if key in annotations:
            try:
                fields.update(reader(annotations[key]))
            except BadValue as bad:
                problems.append(AnnotationProblem(key, annotations[key], str(bad)))
    return fields, problems


def _level(text: str) -> Mapping[str, object]:
    if text not in _LEVELS:
        raise BadValue(", ".join(_LEVELS))
    return _LEVELS[text]


def _memory(text: str) -> Mapping[str, object]:
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError):
        raise BadValue("a JSON object") from None
    if not isinstance(settings, dict):
        raise BadValue("a JSON object")
    binding, exclusive = (_switch(settings, name) for name in (_BINDING, _EXCLUSIVE))
    if exclusive and not binding:
        raise BadValue(f'{_EXCLUSIVE} only together with {_BINDING} "true"')
    return {**({"memory": Memory.BIND} if binding else {}), **({"alone": True} if exclusive else {})}


def _switch(settings: Mapping[str, object], name: str) -> bool:
    value = settings.get(name, "false")
    if not isinstance(value, str) or value not in _SWITCH:
        raise BadValue(f'{name} "true" or "false"')
    return _SWITCH[value]
