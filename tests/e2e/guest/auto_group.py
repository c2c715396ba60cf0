"""Runs inside the emulated machine: pods that say no more than `group.numakin.io: auto` become kin by their traffic.

    python3 -m tests.e2e.guest.auto_group

containerd, and the enforcer with its probes always on. Two servers and their clients are created, each on another NUMA
node, and talk: one pair over pod networks, one over the node's own. When the enforcer knows who talks to whom, new
replicas of three of them are created. Until then moves are told and not made; an enforcer that makes them takes over, the
pairs themselves are moved together, and that is proven. Prints a JSON object a line: what `numakin-enforcer doctor` says,
each pod with what the kernel says, what the enforcer knew before the replicas came, the kernel's CPUs of each replica's
sibling when it had come and of its kin before and after, the moves that were told, and of the pairs in the end their
CPUs, with what the enforcer says of their memory then and what became of the moves' promises.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.standins.patience import PATIENCE_S, until
from numakin.wire import cri_pb2 as cri
from tests import forked
from tests.e2e.guest import runtime
from tests.e2e.guest.talkers import METRICS, NRI_SOCKET, POLL_S, WINDOW_S, Talker, Talkers, asked, traffic
from tests.e2e.lab import kernel
from tests.e2e.lab.cri import NODE_NETWORK, POD_NETWORK
from tests.metrics import value

WINDOWS_TO_LEARN = 2

AUTO = {"group.numakin.io": "auto"}
HASH = "6d4cf"
# Thousandths of a CPU. Servers are large, so that who comes later would not go to them for room's sake.
SERVER_MILLI, CLIENT_MILLI = 500, 100


@dataclass(frozen=True, slots=True)
class Pair:
    """A server and its client, by their Deployments' names."""

    server: str
    client: str
    port: int
    network: cri.NamespaceOption


PAIRS = (Pair("shop", "visitor", 80, POD_NETWORK), Pair("cache", "reader", 8080, NODE_NETWORK))
SERVERS = [pair.server for pair in PAIRS]
REPLICAS = {"visitor": "shop", "reader": "cache", "cache": "reader"}
"""Deployment of which one more is created -> the one that it talks to."""


def pod_name(deployment: str, replica: int) -> str:
    return f"{deployment}-{HASH}-x2x7{replica}"


def talker(deployment: str, replica: int, network: cri.NamespaceOption = NODE_NETWORK) -> Talker:
    milli = SERVER_MILLI if deployment in SERVERS else CLIENT_MILLI
    return Talker(pod_name(deployment, replica), AUTO, milli, {"pod-template-hash": HASH}, network)


class World(Talkers):
    """The pairs, and their replicas."""

    def talk(self, pair: Pair) -> None:
        """Both ends of a pair, from the server's creation to the client's asking."""
        server, client = talker(pair.server, 1, pair.network), talker(pair.client, 1, pair.network)
        address = self.serve(server, pair.port)
        self.say(server)
        self.ask(client, address)
        self.say(client)

    def all_talk(self) -> bool:
        """Whether each server has answered its client."""
        return all(self.answered(pod_name(pair.server, 1)) for pair in PAIRS)

    def replica(self, deployment: str) -> None:
        """One more, which need not talk any more to be placed."""
        sibling, kin = (self.pids[pod_name(entry, 1)] for entry in (deployment, REPLICAS[deployment]))
        before = kernel.allowed(kin)
        added = talker(deployment, 2)
        self.start(added)
        self.say(added)
        places = {"siblings": [kernel.allowed(sibling)], "kin": [before, kernel.allowed(kin)]}
        joined = {who: [place.cpus for place in where] for who, where in places.items()}
        say({"joined": added.name, **joined, "log": self._log_of(added.name)})

    def say(self, talker: Talker) -> None:
        say({"pod": talker.name, "allowed": asdict(kernel.allowed(self.pids[talker.name]))})

    def pairs(self) -> dict[str, dict[str, str]]:
        """What the kernel says of them, by Deployment."""
        ends = [entry for pair in PAIRS for entry in (pair.server, pair.client)]
        places = self.allowed(*(pod_name(entry, 1) for entry in ends))
        return dict(zip(ends, places.values(), strict=True))

    def _log_of(self, pod: str) -> list[str]:
        return [line for line in self.enforcer.log.read_text().splitlines() if pod in line]


def windows() -> dict[int, dict[str, Any]]:
    return {window["number"]: json.loads(window["line"]) for window in asked("/api/v1/windows")["windows"]}


def known(pair: Pair) -> bool:
    """Whether both ways of a pair's talk are in the enforcer's graph."""
    ends = [f"default/{pod_name(entry, 1)}" for entry in (pair.server, pair.client)]
    edges = {(edge["source"], edge["target"]) for edge in traffic()["edges"]}
    return edges >= {tuple(ends), tuple(reversed(ends))}


def doctor() -> dict[str, Any]:
    done = forked.run("numakin-enforcer", ["doctor", "--json", "--nri-socket", NRI_SOCKET], os.environ)
    return {"doctor": json.loads(done.stdout or "[]"), "status": done.returncode, "stderr": done.stderr[-2000:]}


def say(record: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")  # in one piece: threads do so at once
    sys.stdout.flush()


def learn(world: World) -> None:
    world.seeing()
    with ThreadPoolExecutor() as pool:
        list(pool.map(world.talk, PAIRS))
    until(world.all_talk, "each server to have answered", PATIENCE_S)
    since = max(windows(), default=0)
    until(lambda: all(map(known, PAIRS)), "the pairs to be known", PATIENCE_S, pause_s=POLL_S)
    say({"traffic": traffic(), "windows": windows(), "talking_since": since, "uids": world.uids})
    with ThreadPoolExecutor() as pool:
        list(pool.map(world.replica, REPLICAS))


def plan(world: World) -> None:
    """Waits for the moves to be told."""

    def told() -> list[dict[str, Any]]:
        return world.enforcer.log_records("a move is planned")

    until(lambda: len(told()) >= len(PAIRS), "the pairs' moves to be told", PATIENCE_S, pause_s=WINDOW_S / 2)
    say({"planned": told(), "meanwhile": world.pairs()})


def gather(world: World) -> None:
    """Waits for the pairs to be moved together, and for what became of it."""

    def together() -> bool:
        world.passer_by()
        now = world.pairs()
        return all(now[pair.server]["cpus"] == now[pair.client]["cpus"] for pair in PAIRS)

    until(together, "the pairs to be moved together", PATIENCE_S, pause_s=WINDOW_S)
    until(lambda: len(world.moves()) >= len(PAIRS), "the moves to be logged", PATIENCE_S)  # after they were made
    say({"gathered": world.pairs(), "moved": world.moves(), "memory": memory(world), "metric": places()})
    until(lambda: len(proofs(world)) >= len(PAIRS), "the moves to be proven", PATIENCE_S, pause_s=WINDOW_S / 2)
    say({"proven": proofs(world)})


def proofs(world: World) -> list[str]:
    """Why each move helped or did not."""
    judged = [
        entry for event in ("the move helped", "the move did not help") for entry in world.enforcer.log_records(event)
    ]
    return [entry["why"] for entry in judged]


def memory(world: World) -> list[dict[str, Any]]:
    """By pod, as `numakin-enforcer status` has it: how much is away from its NUMA nodes."""
    done = forked.run("numakin-enforcer", ["status", "--json", "--run-dir", str(world.enforcer.run_dir)], os.environ)
    done.check_returncode()
    rows: list[dict[str, Any]] = json.loads(done.stdout)["memory"]
    return rows


def places() -> dict[str, float]:
    """The same of all members together, as the metric has it."""
    with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=PATIENCE_S) as answer:
        page = answer.read().decode()
    return {place: value(page, "numakin_enforcer_member_memory_bytes", place=place) for place in ("local", "remote")}


def main() -> None:
    world = World(runtime.kubelet(), Path(tempfile.mkdtemp()))
    try:
        with ThreadPoolExecutor() as pool:
            examined = pool.submit(doctor)
            world.enforcer.start(PATIENCE_S, "--moves", "plan")
            say(examined.result())
        learn(world)
        plan(world)
        world.enforcer.stop()
        world.enforcer.start(PATIENCE_S)
        gather(world)
    except BaseException:
        print(f"--- {world.enforcer.log}\n{world.enforcer.log_end(60)}")
        raise
    finally:
        world.enforcer.stop()


if __name__ == "__main__":
    main()
