"""Which tests one process runs, and in which order the processes of a run side by side take such groups: the longest
first, so that none is left when all the others have ended.

A group is a file's tests, or those that share a machine, a cluster, the kernel's counters or a site with its browser.
Where a test's name says which container runtime it starts, each runtime has a group of its own: what runtimes run is in
folders, mounts and cgroups of their own. Not by pytest-xdist's own groups: they do nothing with pytest 9.2.
"""

from __future__ import annotations

import re

LONGEST_FIRST = (
    ("tests/e2e/test_numa_caches",),
    ("tests/e2e/test_numa_node",),
    ("tests/e2e/test_numa_",),
    ("tests/tools/setup/test_built_images",),
    tuple(
        f"tests/cluster/test_{name}"
        for name in (
            "chart",
            "evictions",
            "failures",
            "gangs",
            "profile",
            "secured",
            "strict",
            "unlike_machines",
            "zones",
        )
    ),
    ("tests/cluster/",),
    ("tests/enforcer/observe/",),
    ("tests/e2e/test_real_",),
    ("tests/web/",),
    ("tests/e2e/test_peers", "tests/e2e/test_launched_by_runtime"),
    ("tests/e2e/test_bypass", "tests/e2e/test_message_sizes"),
    ("tests/e2e/test_installed",),
    ("tests/e2e/",),
    ("tests/soak/",),
    ("tests/fuzz/",),
    ("tests/lab/demo/test_demo",),
    ("tests/extender/scoring/test_weighing",),
    ("tests/numakin/kubectl/test_on_nodes",),
    ("tests/tools/setup/test_tree",),
    ("tests/tools/release/test_no_release",),
    ("tests/test_again",),
    ("tests/test_mutation",),
    ("tests/test_parts",),
    ("tests/test_reference",),
)
"""Groups of more than one file, and files that take long, by the beginnings of their tests' names. Three emulated machines at
a time, of 2 GB each: one process emulates all CPUs of each. Clusters that one file starts come one after the other, beside
the one that many files share. Of the runtimes' tests each row starts its own. Images are built by their own tests, long
before those that install them.
"""

OF_RUNTIMES = "tests/e2e/"
RUNTIME = re.compile(r"\[.*?((?:containerd|crio)-[\w.]+)")


def group(test: str) -> str:
    """Of a test, by its name."""
    shared = next((row[0] for row in LONGEST_FIRST if test.startswith(row)), test.partition("::")[0])
    runtime = RUNTIME.search(test) if test.startswith(OF_RUNTIMES) else None
    return f"{shared} {runtime[1]}" if runtime else shared


def rank(test: str) -> int:
    """Its place in the order of groups."""
    return next((place for place, row in enumerate(LONGEST_FIRST) if test.startswith(row)), len(LONGEST_FIRST))
