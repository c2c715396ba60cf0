"""Run under the enforcer container's capabilities: which collectors work, one a line; and whether the namespaces
of the process with the pid that is given can be seen.
"""

import sys
from pathlib import Path

from enforcer.observe.bpf.loader import LoadRefused
from enforcer.observe.collectors import cgroup_skb, chain, socket_tracepoints, unix_sockets, wakeups

ROOT = chain.cgroup_root()
if ROOT is None:
    raise SystemExit("no cgroup v2")
OPENERS = {
    "cgroup_skb": lambda: cgroup_skb.open_collector(ROOT, 64),
    "socket_tracepoints": lambda: socket_tracepoints.open_collector(64),
    "unix_sockets": unix_sockets.open_collector,
    "wakeups": wakeups.open_collector,
}
for name, opener in OPENERS.items():
    try:
        collector = opener()
        collector.attach()
        collector.close()
    except (LoadRefused, OSError) as error:
        print(name, "refused:", error)
    else:
        print(name, "works")
try:
    print("namespaces", "works" if Path(f"/proc/{sys.argv[1]}/ns/net").readlink() else "")
except OSError as error:
    print("namespaces refused:", error)
