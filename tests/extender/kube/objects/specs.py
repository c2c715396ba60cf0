"""Specs of AffinityGroups that are taken, and that are not: by the extender and by the definition alike."""

from __future__ import annotations

from typing import Any

from extender.kube.objects.groupspec import LARGEST_PRIORITY
from extender.state.group_spec import GroupSpec
from numakin.placement.optin.options import Defaults, Policy
from numakin.placement.optin.parsing import LARGEST_SIZE

EDGE = {"source": "Deployment/web", "target": "StatefulSet/db"}
DB = {"workload": "StatefulSet/db", "priority": 5}

EDGES = "a list of {source: KIND/NAME, target: another KIND/NAME, weight: NUMBER}"
ROWS = "a list of {workload: KIND/NAME, priority: NUMBER}"

TAKEN: list[tuple[Any, GroupSpec]] = [
    (None, GroupSpec()),
    ({}, GroupSpec()),
    *(({"policy": str(policy)}, GroupSpec(Defaults(policy))) for policy in Policy),
    ({"size": 1}, GroupSpec(Defaults(size=1))),
    ({"size": LARGEST_SIZE}, GroupSpec(Defaults(size=LARGEST_SIZE))),
    ({"priorities": []}, GroupSpec()),
    ({"priorities": [DB, {"workload": "Deployment/log", "priority": 0}]},
     GroupSpec(priorities={"shop/StatefulSet/db": 5, "shop/Deployment/log": 0})),
    ({"policy": "none", "size": 3, "priorities": [DB]},
     GroupSpec(Defaults(Policy.NONE, 3), {"shop/StatefulSet/db": 5})),
    ({"edges": [EDGE, {**EDGE, "source": "Job/load", "weight": 9}]},
     GroupSpec(edges={("shop/Deployment/web", "shop/StatefulSet/db"): 1, ("shop/Job/load", "shop/StatefulSet/db"): 9})),
]  # fmt: skip

BAD: list[tuple[dict[str, Any], str]] = [
    ({"policy": "strict"},
     "spec.policy: 'strict' is not allowed; allowed: best-effort, restricted, single-numa-node, none"),
    ({"policy": 3}, "spec.policy: 3 is not allowed; allowed: best-effort, restricted, single-numa-node, none"),
    ({"size": 0}, "spec.size: 0 is not allowed; allowed: an integer from 1 to 10000"),
    ({"size": LARGEST_SIZE + 1}, "spec.size: 10001 is not allowed; allowed: an integer from 1 to 10000"),
    ({"size": True}, "spec.size: True is not allowed; allowed: an integer from 1 to 10000"),
    ({"size": "8"}, "spec.size: '8' is not allowed; allowed: an integer from 1 to 10000"),
    ({"priorities": {}}, "spec.priorities: {} is not allowed; allowed: a list of at most 100"),
    ({"priorities": ["db"]},
     f"spec.priorities: ['db'] is not allowed; allowed: {ROWS}"),
    ({"priorities": [{"workload": "db", "priority": 5}]},
     f"spec.priorities: [{{'workload': 'db', 'priority': 5}}] is not allowed; allowed: {ROWS}"),
    ({"priorities": [{"workload": "A/b", "priority": LARGEST_PRIORITY + 1}]},
     "spec.priorities: [{'workload': 'A/b', 'priority': 101}] is not allowed; allowed: the priority of A/b: an integer from 0 to 100"),
    ({"edges": "db"}, "spec.edges: 'db' is not allowed; allowed: a list of at most 200"),
    ({"edges": ["db"]}, f"spec.edges: ['db'] is not allowed; allowed: {EDGES}"),
    ({"edges": [{"source": "A/b"}]}, f"spec.edges: [{{'source': 'A/b'}}] is not allowed; allowed: {EDGES}"),
    ({"edges": [{"source": "A/b", "target": "A/c", "weight": 0}]},
     "spec.edges: [{'source': 'A/b', 'target': 'A/c', 'weight': 0}] is not allowed; allowed: the weight of A/b to A/c: an integer from 1 to 100"),
]  # fmt: skip
