"""Run under the enforcer container's capabilities: which collectors work, one a line; and whether the namespaces
of the process with the pid that is given can be seen.
"""

import sys
from pathlib import Path

from enforcer.observe.bpf.loader import LoadRefused
from enforcer.observe.collectors import cgroup_skb, chain, socket_tracepoints, unix_sockets, wakeups

NO_CGROUP = "no cgroup v2"
"""All that is said on a machine without one."""


def main(pid: str) -> None:
    root = chain.cgroup_root()
    if root is None:
        raise SystemExit(NO_CGROUP)
    openers = {
        "cgroup_skb": lambda: cgroup_skb.open_collector(root, 64),
        "socket_tracepoints": lambda: socket_tracepoints.open_collector(64),
        "unix_sockets": unix_sockets.open_collector,
        "wakeups": wakeups.open_collector,
    }
    for name, opener in openers.items():
        try:
            collector = opener()
            collector.attach()
            collector.close()
        except (LoadRefused, OSError) as error:
            print(name, "refused:", error)
        else:
            print(name, "works")
    try:
        print("namespaces", "works" if Path(f"/proc/{pid}/ns/net").readlink() else "")
    except OSError as error:
        print("namespaces refused:", error)


if __name__ == "__main__":
    main(sys.argv[1])
