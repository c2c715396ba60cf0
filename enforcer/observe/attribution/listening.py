"""Which ports are listened on, as each network namespace's /proc/PID/net/tcp and tcp6 show.

Of a connection that is older than the probes no SYN was seen, and the smaller port is the server's only by convention:
with servers above the ephemeral floor (50051), or clients that may use any port, it is wrong for half of the
connections. What is listened on settles it. UDP has no such state: there the convention stays.
"""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from enforcer.observe.attribution.containers import LocalContainer
from enforcer.observe.attribution.processes import PROC
from enforcer.observe.bpf.counters import TCP, FlowKey

HOST = ""
"""The node's own network namespace; any other is named by its pod's uid."""

TABLES = ("tcp", "tcp6")
LISTEN = b"0A"
_PORT = re.compile(rb"[0-9A-F]{4}")
CHUNK = 4096

MOST_BYTES = 1 << 20
"""Read of one table: some 7,000 listeners."""

TRIED = 2
"""Processes of a container that are tried: one may have ended."""

POLL_S = 0.05
"""Processor seconds of one look, after which the remaining namespaces wait for the next: for each the kernel walks the
hash table of the whole node's connections, which took 3.8 ms with 262,144 buckets."""

YOUNG = 6
"""Looks at a namespace before it waits for its turn: a program begins to listen some time after its container began."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Ports by namespace, for those that were looked at."""

    ports: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def everywhere(self) -> frozenset[int]:
        return frozenset().union(*self.ports.values())

    def is_client(self, flow: FlowKey, container: LocalContainer) -> bool:
        """Whether a flow counted as a server's is a client's after all: what would be its port has no listener."""
        here = self.ports.get(namespace(container))
        return flow.protocol == TCP and here is not None and flow.port not in here


UNKNOWN = Listening()


class ListeningPoll:
    """Looks at the namespaces in turn, new ones first. One owner.

    cost: seconds of any clock that measures what a check takes.
    """

    def __init__(self, proc: Path = PROC, cost: Callable[[], float] = time.thread_time) -> None:
        self._proc, self._cost = proc, cost
        self._ports_of: dict[str, frozenset[int]] = {}
        """The one looked at longest ago comes first."""
        self._polls: Counter[str] = Counter()

    def poll(self, containers: Iterable[LocalContainer], *, again: bool) -> Listening:
        """again: also at those that are known, as far as time allows."""
        processes: dict[str, list[int]] = defaultdict(list)
        for container in containers:
            processes[namespace(container)] += sorted(container.pids)[:TRIED]
        self._ports_of = {name: ports for name, ports in self._ports_of.items() if name in processes}
        self._polls = Counter({name: self._polls[name] for name in self._ports_of})
        due = [name for name in processes if name not in self._ports_of]
        due += sorted(self._ports_of, key=lambda name: self._polls[name] >= YOUNG) if again else []
        end = self._cost() + POLL_S
        for name in due:
            for pid in processes[name]:
                ports = self._ports(pid)
                if ports is not None:
                    self._ports_of.pop(name, None)
                    self._ports_of[name] = ports
                    self._polls[name] += 1
                    break
            if self._cost() >= end:
                break
        return Listening(dict(self._ports_of))

    def _ports(self, pid: int) -> frozenset[int] | None:
        """None when the process has ended."""
        try:
            return frozenset().union(*(listened(self._proc / str(pid) / "net" / table) for table in TABLES))
        except OSError:
            return None


def namespace(container: LocalContainer) -> str:
    return HOST if container.host_network else container.pod_uid


def listened(table: Path) -> frozenset[int]:
    """The ports of a table that are listened on; none where there is no such table. OSError if it can't be read.

    The kernel lists listening sockets first, so that no more is read than they take.
    """
    ports: set[int] = set()
    try:
        with table.open("rb", buffering=0) as file:
            rest = b""
            for _ in range(MOST_BYTES // CHUNK):
                chunk = file.read(CHUNK)
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    fields = line.split()
                    if len(fields) < 4 or fields[0] == b"sl":
                        continue
                    if fields[3] != LISTEN:
                        return frozenset(ports)
                    port = fields[1].rpartition(b":")[2]
                    if _PORT.fullmatch(port):
                        ports.add(int(port, 16))
                if not chunk:
                    break
    except FileNotFoundError:
        if table.name == TABLES[0]:
            raise
    return frozenset(ports)
