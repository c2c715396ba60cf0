"""Runs inside the emulated machine: every member of the fall-back chain, on a kernel that refuses none.

    python3 -m tests.e2e.guest.chain

All members are attached at once and see the same traffic, between two network namespaces with a cgroup each. Prints a
JSON object a line: each member with what the kernel said to it, then for each exchange what each member counted at each
end.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from enforcer.observe.bpf.counters import TCP, UDP, Volume
from enforcer.observe.bpf.loader import LoadRefused
from enforcer.observe.collectors import chain
from enforcer.observe.collectors.collector import Collector
from enforcer.observe.collectors.probes import Probes
from lab.standins.patience import PATIENCE_S, until
from tests.e2e.guest import web
from tests.enforcer.observe.observe_lab import Lab, flows, lab

CLIENT, SERVER = {4: "10.87.0.1", 6: "fd87::1"}, {4: "10.87.0.2", 6: "fd87::2"}
ADDRESSES = ["10.87.0.1/24", "fd87::1/64"], ["10.87.0.2/24", "fd87::2/64"]
PROTOCOLS = {"tcp": TCP, "udp": UDP}


@dataclass(frozen=True, slots=True)
class Exchange:
    """count times request bytes one way and reply bytes the other, from a client of this IP version.

    listening: the address that the server is bound to, the pod's own if empty.
    """

    name: str
    kind: str
    version: int
    count: int
    request: int
    reply: int
    listening: str = ""

    @property
    def asked(self) -> int:
        return self.count * self.request

    @property
    def answered(self) -> int:
        return self.count * self.reply


EXCHANGES = (
    Exchange("small-tcp4", "tcp", 4, 200, 101, 1009),
    Exchange("small-tcp6", "tcp", 6, 200, 101, 1009),
    Exchange("small-tcp4-to-a-v6-socket", "tcp", 4, 200, 101, 1009, "::"),
    Exchange("bulk-tcp4", "tcp", 4, 6, 1 << 20, 1 << 20),
    Exchange("bulk-tcp6", "tcp", 6, 6, 1 << 20, 1 << 20),
    Exchange("udp4", "udp", 4, 200, 101, 1009),
    Exchange("udp6", "udp", 6, 200, 101, 1009),
)
FIRST_PORT = 5000
WEB_PORT = 80
WRK_S, WRK_CONNECTIONS, WRK_PAUSE_MS = 15, 4, 10


class Members:
    """The members that this kernel takes, attached."""

    def __init__(self, stack: ExitStack, sources: chain.Sources) -> None:
        self.attached: dict[str, Collector] = {}
        for name, open_member in chain.MEMBERS:
            begun, refused, how = time.monotonic(), "", ""
            try:
                collector = chain.tried(open_member(sources))
            except (LoadRefused, OSError) as error:
                refused = str(error)
            else:
                self.attached[name] = collector
                how = collector.loaded.how if isinstance(collector, Probes) else ""
                stack.callback(collector.close)
            say({"member": name, "refused": refused, "how": how, "seconds": round(time.monotonic() - begun, 1)})
        for collector in self.attached.values():
            collector.attach()

    def counted(self, pods: Mapping[str, Any], port: int, protocol: int) -> dict[str, dict[str, Any]]:
        """Member -> end -> the volume that it counted there, and with whom."""
        result: dict[str, dict[str, Any]] = {}
        for name, collector in self.attached.items():
            ends = result.setdefault(name, {})
            for (pod, peer, of, server, kind), volume in flows(collector.drain(), pods).items():
                if (of, server, kind) == (port, pod == "server", protocol):
                    ends[pod] = {"peer": peer, **asdict(volume)}
        return result


def say(record: Mapping[str, Any]) -> None:
    print(json.dumps(record), flush=True)


def two_pods(built: Lab) -> dict[str, dict[str, Any]]:
    client, server = built.namespace(), built.namespace()
    built.veth(client, server, *ADDRESSES)
    return {
        "client": {"cgroup": built.cgroup("client"), "namespace": client},
        "server": {"cgroup": built.cgroup("server"), "namespace": server},
    }


def exchanged(built: Lab, pods: Mapping[str, Any], members: Members, exchange: Exchange, port: int) -> None:
    """Counts are read while the connection is open, since one member sees no other."""
    numbers = (exchange.request, exchange.reply)
    listening = exchange.listening or SERVER[exchange.version]
    built.serve(exchange.kind, listening, port, *numbers, **pods["server"])
    wanted = {
        "client": Volume(tx_bytes=exchange.asked, rx_bytes=exchange.answered),
        "server": Volume(tx_bytes=exchange.answered, rx_bytes=exchange.asked),
    }
    result: dict[str, dict[str, Any]] = {}

    def complete() -> bool:
        """The last call has returned and the last segment is acknowledged."""
        result.update(members.counted(pods, port, PROTOCOLS[exchange.kind]))
        ends = [(ends.get(name, {}), least) for ends in result.values() for name, least in wanted.items()]
        return all(
            entry.get(way, 0) >= getattr(least, way) for entry, least in ends for way in ("tx_bytes", "rx_bytes")
        )

    target = SERVER[exchange.version]
    with built.asking(exchange.kind, target, port, *numbers, exchange.count, **pods["client"]), suppress(TimeoutError):
        until(complete, "all to be counted", PATIENCE_S if exchange.kind == "tcp" else 1)
    say({"exchange": exchange.name, "counted": result})


@contextmanager
def nginx(built: Lab, pods: Mapping[str, Any], folder: Path) -> Iterator[None]:
    process = built.start(*web.server(folder, f"{SERVER[4]}:{WEB_PORT}"), **pods["server"])
    until((folder / "pid").exists, "nginx to listen", PATIENCE_S)
    yield
    process.terminate()
    process.wait(PATIENCE_S)


def served(built: Lab, pods: Mapping[str, Any], members: Members) -> None:
    """nginx sends a file to wrk: sendfile, and more than one connection."""
    folder = Path(tempfile.mkdtemp())
    with nginx(built, pods, folder):
        wrk = built.start(*web.client(folder, SERVER[4], WRK_CONNECTIONS, WRK_S, WRK_PAUSE_MS), **pods["client"])
        wrk.wait(PATIENCE_S)
    result = members.counted(pods, WEB_PORT, TCP)  # the log has what was under way when wrk ended, too
    say({"web": dict(zip(("requests", "asked", "answered"), web.moved(folder), strict=True)), "counted": result})


def main() -> None:
    with lab() as built, ExitStack() as stack:
        pods = two_pods(built)
        namespaces = [Path("/run/netns") / pod["namespace"] for pod in pods.values()]
        members = Members(stack, chain.Sources(chain.cgroup_root(), lambda: namespaces))
        for offset, exchange in enumerate(EXCHANGES):
            exchanged(built, pods, members, exchange, FIRST_PORT + offset)
        served(built, pods, members)


if __name__ == "__main__":
    main()
