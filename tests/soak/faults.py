"""What is done to the cluster while pods come and go: each fault lasts while its context is open."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random

from lab.standins.apiserver import faults as api
from tests.soak import clock, processes, run_folder
from tests.soak.cluster import Cluster
from tests.soak.nodes import Node
from tests.soak.packets import namespaces
from tests.soak.packets.scrambling import Shares
from tests.soak.proxy import Mode

Fault = Callable[[Cluster, Random], AbstractContextManager[None]]

KILLS = 10
"""How often each process is killed while every other fault comes once."""

EXPIRED = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version",'
EXPIRED += b'"reason":"Expired","code":410}'
CONFLICT = EXPIRED.replace(b"Expired", b"Conflict").replace(b"410", b"409")
JSON = {"Content-Type": "application/json"}
STORM = 10_000
"""Answers of a storm at most: more than are asked for while it lasts."""


PACKETS = {
    "packets scrambled": Shares(lost=0.02, duplicated=0.02, reordered=0.2, delay_s=0.002, held_s=0.02),
    "a third of the packets lost": Shares(lost=0.33),
}
"""The first is a bad wide-area network's: TCP comes through at once. By the second it waits, each time twice as long."""


@dataclass(frozen=True, slots=True)
class Row:
    """weight: how often it is drawn before every other is drawn again. seconds: between which it lasts."""

    fault: Fault
    weight: int = 1
    seconds: tuple[float, float] = (0.2, 1.5)


@contextmanager
def _killed(role: str, cluster: Cluster, random: Random) -> Iterator[None]:
    cluster.kill(_pid(cluster, random, role))
    yield


@contextmanager
def _ended(role: str, cluster: Cluster, random: Random) -> Iterator[None]:
    pid = _pid(cluster, random, role)
    if pid:
        processes.send(pid, signal.SIGTERM)
    yield


@contextmanager
def _all_killed(cluster: Cluster, _random: Random) -> Iterator[None]:
    """Every process of both programs at one time, as when power is lost."""
    pids = [pid for node in cluster.nodes for pid in node.enforcer.processes().values()]
    for pid in [*pids, cluster.extender_pid()]:
        cluster.kill(pid)
    yield


@contextmanager
def _stopped(role: str, cluster: Cluster, random: Random) -> Iterator[None]:
    pid = _pid(cluster, random, role)
    with processes.stopped(pid) if pid else ExitStack():
        yield


@contextmanager
def _frozen(cluster: Cluster, random: Random) -> Iterator[None]:
    pids = list(_node(cluster, random).enforcer.processes().values())
    with processes.frozen(pids):
        yield


@contextmanager
def _starved(
    limit: Callable[[int], AbstractContextManager[None]], role: str, cluster: Cluster, random: Random
) -> Iterator[None]:
    pid = _pid(cluster, random, role)
    with limit(pid) if pid else ExitStack():
        yield


@contextmanager
def _runtime(how: signal.Signals, cluster: Cluster, random: Random) -> Iterator[None]:
    _node(cluster, random).restart(how)
    yield


@contextmanager
def _network(mode: Mode, cluster: Cluster, random: Random) -> Iterator[None]:
    proxy = cluster.proxies[_node(cluster, random).name]
    proxy.mode(mode)
    try:
        yield
    finally:
        proxy.mode(Mode.PASS)


@contextmanager
def _scrambled(shares: Shares, cluster: Cluster, random: Random) -> Iterator[None]:
    with cluster.links[_node(cluster, random).name].scrambled(shares, random.getrandbits(32)):
        yield


@contextmanager
def _reset(cluster: Cluster, _random: Random) -> Iterator[None]:
    for proxy in cluster.proxies.values():
        proxy.reset()
    yield


@contextmanager
def _clock_jumped(role: str, cluster: Cluster, random: Random) -> Iterator[None]:
    wrong = cluster.clock if role == "extender" else _node(cluster, random).clock
    with wrong.jumped(random.choice(clock.JUMPS)):
        yield


@contextmanager
def _answers(fault: api.Fault, verb: str, cluster: Cluster, _random: Random) -> Iterator[None]:
    cluster.api.order(fault, verb, times=STORM)
    try:
        yield
    finally:
        cluster.api.end_faults()


@contextmanager
def _watches(fault: api.Fault, cluster: Cluster, _random: Random) -> Iterator[None]:
    cluster.api.break_watches(fault)
    yield


@contextmanager
def _folder(fault: Callable[..., AbstractContextManager[None]], cluster: Cluster, random: Random) -> Iterator[None]:
    """And the hook is killed while it lasts, every other time: it can write nothing down before."""
    node = _node(cluster, random)
    with fault(node.run_dir):
        if random.random() < 0.5:
            cluster.kill(node.enforcer.processes().get("hook", 0))
        yield


def _node(cluster: Cluster, random: Random) -> Node:
    return random.choice(cluster.nodes)


def _pid(cluster: Cluster, random: Random, role: str) -> int:
    return cluster.extender_pid() if role == "extender" else _node(cluster, random).enforcer.processes().get(role, 0)


def _every() -> Iterator[tuple[str, Row]]:
    for role in ("hook", "observer", "supervisor", "extender"):
        yield f"SIGKILL: {role}", Row(partial(_killed, role), weight=KILLS)
        yield f"SIGSTOP, SIGCONT: {role}", Row(partial(_stopped, role), seconds=(0.2, 4.0))
    for role in ("supervisor", "extender"):
        yield f"SIGTERM: {role}", Row(partial(_ended, role))
    yield "SIGKILL: every process at one time", Row(_all_killed)
    if processes.can_freeze():
        yield "freezer: a node's enforcer", Row(_frozen, seconds=(0.2, 4.0))
    for role in ("hook", "observer", "extender"):
        yield f"no descriptors left: {role}", Row(partial(_starved, processes.few_descriptors, role))
        yield f"no memory left: {role}", Row(partial(_starved, processes.little_memory, role))
    yield "container runtime ends and comes again", Row(partial(_runtime, signal.SIGTERM))
    yield "container runtime is killed and comes again", Row(partial(_runtime, signal.SIGKILL))
    for mode in (Mode.STALL, Mode.FORTH, Mode.BACK, Mode.DELAY, Mode.HALF_OPEN, Mode.REFUSE):
        yield f"network to the extender: {mode.value}", Row(partial(_network, mode), seconds=(0.2, 4.0))
    yield "network to the extender: RST", Row(_reset)
    if not namespaces.missing():
        for name, shares in PACKETS.items():
            yield f"network to the extender: {name}", Row(partial(_scrambled, shares), weight=2, seconds=(1.5, 4.0))
    if clock.LIBRARY:
        for role in ("node", "extender"):
            yield f"wall clock jumps: {role}", Row(partial(_clock_jumped, role), weight=2, seconds=(1.5, 4.0))
    yield "API server: 429", Row(partial(_answers, api.THROTTLED, ""))
    yield "API server: 500", Row(partial(_answers, api.Answer(500, b"no leader"), ""))
    yield "API server: 410", Row(partial(_answers, api.Answer(410, EXPIRED, JSON), "watch"))
    yield "API server: 409", Row(partial(_answers, api.Answer(409, CONFLICT, JSON), "patch"))
    yield "API server: garbage", Row(partial(_answers, api.Answer(200, b'{"kind": "\xff', JSON), ""))
    yield "API server: no answer", Row(partial(_answers, api.Stall(), "list"))
    yield "API server: RST in the middle", Row(partial(_answers, api.Cut(reset=True), ""))
    yield "watch: garbage", Row(partial(_watches, api.Send(b'{"type":"ADDED","object":{"metadata":[]}}\n')))
    yield "watch: 410", Row(partial(_watches, api.Send(b'{"type":"ERROR","object":' + EXPIRED + b"}\n")))
    yield "watch: RST", Row(partial(_watches, api.Cut(reset=True)))
    yield "run folder: full", Row(partial(_folder, run_folder.full))
    yield "run folder: read-only", Row(partial(_folder, run_folder.read_only))


def _lacking() -> Iterator[tuple[str, str]]:
    if not processes.can_freeze():
        yield "freezer", "no cgroup can be frozen"
    if why := namespaces.missing():
        yield ", ".join(f"network to the extender: {name}" for name in PACKETS), why
    if not clock.LIBRARY:
        yield "wall clock jumps", "Debian's package faketime is not installed"


FAULTS: Mapping[str, Row] = dict(_every())

LEFT_OUT: Mapping[str, str] = dict(_lacking())
"""Faults that this machine can't have, and why."""
