"""The topology manager's policies: what each says of a request, by its preferred bit.

| policy | admits |
|---|---|
| none, best-effort | always |
| restricted | a preferred hint |
| single-numa-node | a preferred hint of one NUMA node |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numakin.placement.optin.options import Policy

ADMITS: Mapping[Policy, Callable[[bool], bool]] = {
    Policy.NONE: lambda _preferred: True,
    Policy.BEST_EFFORT: lambda _preferred: True,
    Policy.RESTRICTED: lambda preferred: preferred,
    Policy.SINGLE_NUMA_NODE: lambda preferred: preferred,
}
"""By the preferred bit of `hints`, for single-numa-node that of a merge of hints of one NUMA node each."""
