"""The commands, a module for each: NAME, EXAMPLES, add_options and run; the docstring's first line is its help."""

from numakin.kubectl.commands import (
    cluster_map,
    compare,
    doctor,
    explain,
    groups,
    plan,
    record,
    regroup,
    release,
    replay,
    top,
)

COMMANDS = (explain, cluster_map, top, groups, plan, regroup, doctor, record, replay, compare, release)
