"""The written bounds of the report stream: what is over one is refused by its name, never cut off silently."""

from __future__ import annotations

MESSAGE_BYTES = 8 << 20
"""The largest message either way: a report of 500 pods is below 300 KiB, a Machine of 1,024 CPUs below 32 KiB."""

NAME_LENGTH = 253
"""Names of nodes, pods and containers (a DNS-1123 subdomain), and every other name on the stream."""

ID_LENGTH = 512
"""Pod uids, container ids, reservation keys (a uid, a slash and a container's name)."""

ID_LIST_LENGTH = 32_768
"""A set of ids in the kernel's list format; alternating ids up to 8,191 stay below it."""

TEXT_LENGTH = 1_024
"""Each part of a reason; versions."""

NUMA_NODES = 1_024
"""MAX_NUMNODES of every distribution's kernel."""

CPU_GROUPS = 8_192
"""Cores, caches or sockets of one machine: CONFIG_NR_CPUS is not above it."""

RESERVATIONS = 10_000
"""Reservations of one node. The kubelet's largest supported number of pods is 110; clusters in the wild go up to 1,000.
"""

ALLOCATIONS = 20_000
"""Containers of one node."""

DECISIONS = 4_096
"""Of one report; an enforcer keeps up to 2,048 while there is no stream."""

REASONS = 64
"""Of one decision."""

HUGEPAGE_SIZES = 16
"""Of one NUMA node."""

ESTIMATES = 16
"""Numbers of one demand that are said to be estimates: there are two of them today."""

THREADS = 64
"""Of one Health message."""

DEVICES = 64
"""PCI functions of one Health message: an enforcer counts the rest."""

DEVICE_NAMES = 16
"""Of one PCI function."""

FREE_DEVICES = 1_024
"""Of one report: kinds of devices, by what NUMA nodes they are near to. A node has a handful of device plugins."""

FLOWS = 100_000
"""Of one Traffic message."""

USES = 2_048
"""Workloads whose use one Traffic message tells."""

USE_MILLI = 1_000_000_000
"""Millicores that one pod uses: a million CPUs."""

REPLICA_COUNTS = 128
"""Workloads whose replicas a nomination counts, its own first: 8 KiB. Of the others the node expects what it saw."""

CONTAINERS = 1_000
"""Containers of one nominated pod."""

NAMESPACES = 10_000
"""Namespaces with settings of an operator's; Kubernetes supports as many in a cluster. The rest is left out, and said.
"""

MESSAGES_PER_SECOND = 50
"""A stream's rate; an enforcer sends some ten messages a second at its busiest."""

MESSAGE_BURST = 500
"""Messages that a stream may send at once."""

UNREAD_MESSAGES = 10_000
"""Messages that wait for an enforcer which does not read its stream; one that is further behind is cut off."""
