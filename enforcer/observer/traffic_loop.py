"""The observer's thread that watches traffic: windows in, the graph kept; kin and moves for the hook and flows for the
extender out.
"""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from pathlib import Path
from typing import TypeAlias

from enforcer.local import learned
from enforcer.observe.collectors.duty import DutyCycle
from enforcer.observer import kinship, windows
from enforcer.observer.moves.candidates import Rested, move_options
from enforcer.observer.moves.rounds import MoveRounds
from enforcer.observer.planning_thread import Locality, PlanningInput, PlanningThread
from enforcer.observer.windows import LiveWindows
from enforcer.settings.config import Config
from numakin.placement.model.topology import Machine
from numakin.placement.plan.problem import Weights
from numakin.placement.state.occupancy import Occupancy
from numakin.placement.traffic.graph import Deltas, Graph, TrafficTally
from numakin.placement.traffic.tenancy import SEPARATE
from numakin.placement.traffic.window import Window
from numakin.process.log import Log
from numakin.process.memory import give_back, leave_files
from numakin.process.threads import STALE_AFTER_S, Threaded, Threads
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb

log = Log("observer.traffic")

MOST_FLOWS = 40
"""Flows in one Traffic message, the heaviest first: 4 KiB with pod uids; what is left adds up and waits."""

KEPT_WINDOWS = 64
"""Windows that `record` may still ask for."""

HALF_LIVES = 6
"""The graph's half-life in windows: what was seen in one window counts for half after six more."""


@dataclass(frozen=True, slots=True)
class KeptWindow:
    """compressed: its line, as `record` writes it. The flows of 500 pods with 2,000 edges are 60 KiB instead of 600,
    and take 3 ms to compress.
    """

    number: int
    compressed: bytes

    @classmethod
    def of(cls, number: int, window: Window) -> KeptWindow:
        return cls(number, zlib.compress(window.to_json().encode(), level=1))

    @property
    def line(self) -> str:
        return zlib.decompress(self.compressed).decode()


@dataclass(frozen=True, slots=True)
class TrafficView:
    """What is known now. windows: the latest. unseen: containers whose traffic can't be
    told from others', by the reason. session: of the observer whose windows these are, which count from 1. learned_at:
    when the latest window was added to the graph, by the monotonic clock; None before the first. programs: how those
    in the kernel were loaded, empty without any.
    """

    collector: str = "none"
    refusals: tuple[tuple[str, str], ...] = ()
    graph: Graph = field(default_factory=Graph)
    names: dict[str, str] = field(default_factory=dict)
    windows: tuple[KeptWindow, ...] = ()
    unattributed_bytes: int = 0
    lost_bytes: int = 0
    unseen: tuple[tuple[str, int], ...] = ()
    session: str = ""
    learned_at: float | None = None
    programs: str = ""


@dataclass(slots=True)
class Outlets:
    """Where the watch sends what it learned. `plan` and `moves` are called from the planner's thread, the others from
    the watch's. memory: bytes on each NUMA node of a reservation in an occupancy.
    """

    kin: Callable[[local.KinTable], None]
    plan: Callable[[local.Plan], None]
    moves: Callable[[local.Moves], None]
    traffic: Callable[[pb.Traffic], None]
    occupancy: Callable[[], Occupancy]
    memory: Callable[[Occupancy, str], Mapping[int, int]] = lambda _occupancy, _reservation: {}


Opener: TypeAlias = Callable[[DutyCycle, Callable[[], float]], LiveWindows]
"""From the share of time that probes are on, and a clock, to what the kernel counts."""


class TrafficLoop(Threaded):
    """A thread of its own; `received` hands in the node's containers; `view` is the latest for readers."""

    def __init__(
        self, config: Config, machine: Machine, outlets: Outlets, threads: Threads, live: Opener = LiveWindows
    ) -> None:
        self._config, self._outlets, self._open = config, outlets, live
        self._lock = threading.Lock()
        self._received: Mapping[str, local.LocalContainer] = {}
        self._containers: Mapping[str, local.LocalContainer] = {}
        self._changed = True
        self._counts: dict[str, pb.ReplicaCount] = {}
        self._workload_index = kinship.WorkloadIndex(window_s=config.window_s)
        self._between: Weights = {}
        self._kin_table: local.KinTable | None = None
        self._tally = TrafficTally(half_life=HALF_LIVES * config.window_s)
        self._began = time.monotonic()
        self._deltas = Deltas()
        self._rested = Rested()
        self._machine = machine
        self._moves = MoveRounds(config, machine, memory=outlets.memory, name=self._named)
        self.tenancy = SEPARATE
        """Which namespaces' pods may be kin; replaced as a whole, from any thread."""
        self._planner = PlanningThread(
            machine, lambda plan: outlets.plan(learned.plan_to(plan)), self._offer_moves, threads=threads
        )
        self._live: LiveWindows | None = None
        self._replayed: Iterator[Window] | None = None
        self._thread = threads.thread(
            "traffic",
            self._replay if config.replay else self._watch,
            last=self._close,
            stale_after_s=max(STALE_AFTER_S, 4 * config.window_s),
        )
        self._kept: deque[KeptWindow] = deque(maxlen=KEPT_WINDOWS)
        self.view = TrafficView(session=os.urandom(16).hex())

    def received(self, message: local.Containers) -> None:
        """Called by the thread that reads the hook: what the watch reads meanwhile never changes."""
        with self._lock:
            before = {} if message.whole else self._received
            gone = set(message.gone)
            kept = {key: container for key, container in before.items() if key not in gone}
            self._received = {**kept, **{container.id: container for container in message.containers}}
            self._changed = True

    def counted(self, replicas: Iterable[pb.ReplicaCount]) -> None:
        """What the extender has sent; called by its stream's thread. The next plan, within a second, goes by it."""
        with self._lock:
            self._counts |= {count.workload: count for count in replicas}

    def on(self, machine: Machine) -> None:
        """Its CPUs or memory have changed: what was planned and declined on the one before is forgotten."""
        if machine != self._machine:
            self._machine = machine
            self._moves.on(machine)
            self._planner.on(machine)

    def hook_came(self) -> None:
        """Another one, which knows nothing yet; called by the thread that reads the hook."""
        if self._kin_table is not None:
            self._outlets.kin(self._kin_table)
        self._planner.send_again()

    def declined(self, message: local.Moves) -> None:
        """Moves that the hook was offered and that did not hold."""
        self._moves.declined(message, self._outlets.occupancy())

    @property
    def moves_held_back(self) -> str:
        """What an operator's options keep running members from now, in words; empty: nothing."""
        return self._moves.held_back

    @property
    def locality(self) -> Locality:
        """As of the latest plan."""
        return self._planner.locality

    def start(self) -> None:
        self._planner.start()
        super().start()

    def stop(self, timeout_s: float = 0.0) -> None:
        super().stop(timeout_s)
        self._planner.stop(timeout_s)

    def _watch(self) -> None:
        """One window. Where the kernel can't be read any more it is opened anew, while what was learned stays."""
        live = self._live = self._live or self._opened()
        try:
            end = time.monotonic() + self._config.window_s
            while (now := time.monotonic()) < end:
                if self._take_over():
                    live.received(self._containers.values())
                    self._show(live)
                self._recount()
                due = min(live.step(now), end)
                if self._thread.stopping.wait(max(0.0, min(due - time.monotonic(), 1.0))):
                    return
            window = live.window(now)
        except Exception:
            self._close()
            raise
        self._learn(window, live.collector)

    def _opened(self) -> LiveWindows:
        duty = DutyCycle.within(self._config.window_s, float(self._config.observe))
        live = self._open(duty, time.monotonic)
        self._show(live)
        self._changed = True
        return live

    def _close(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.close()

    def _show(self, live: LiveWindows) -> None:
        refusals = tuple((refusal.name, refusal.reason) for refusal in live.refusals)
        unseen = tuple(live.unseen.items())
        self.view = replace(
            self.view, collector=live.collector, programs=live.programs, refusals=refusals, unseen=unseen
        )

    def _replay(self) -> None:
        """One window of a recording as if it were seen now, the last one for ever. BadRecording."""
        if self._replayed is None:
            file = Path(self._config.replay)
            log.info("traffic is replayed", file=file, windows=sum(1 for _ in windows.recorded(file)))
            self._replayed = chain(windows.recorded(file), repeat(Window(self._config.window_s)))
        window = next(self._replayed)
        if self._thread.stopping.wait(min(window.seconds, self._config.window_s)):
            return
        self._take_over()
        self._learn(window, "replay")

    def _take_over(self) -> bool:
        """Takes over the containers received since the last time."""
        with self._lock:
            changed, self._changed = self._changed, False
            self._containers = self._received
        if changed:
            self._workload_index = self._workload_index.after(self._containers.values())
        return changed

    def _recount(self) -> None:
        """Plans anew where other numbers of replicas are expected than the latest plan has."""
        if self._take_counts():
            workloads = self._workload_index.expected(self._between)
            self._planner.recount(workloads, self._outlets.occupancy().on(self._machine))

    def _take_counts(self) -> bool:
        with self._lock:
            counts, self._counts = self._counts, {}
        if counts:
            self._workload_index = self._workload_index.counted(counts.values())
        return bool(counts)

    def _learn(self, window: Window, collector: str) -> None:
        now = time.monotonic()
        workloads = self._workload_index.workloads
        ours = windows.opted_in_only(window, workloads)
        self._tally.forget(window.services)
        self._tally.add(ours, now)
        self._deltas.add(ours)
        graph = self._tally.graph(now)
        tenancy = self.tenancy
        talk = tenancy.within(graph.weights(), workloads)
        between = tenancy.within(graph.rolled_up(workloads).weights())
        kin = kinship.learned(talk, between, self._workload_index)
        self._kin_table = learned.kin_table(kin, self.view.session, (now - self._began) / self._tally.half_life)
        self._outlets.kin(self._kin_table)
        self._plan(talk, between, kin)
        self._send(window, collector)
        self._kept.append(KeptWindow.of(self._kept[-1].number + 1 if self._kept else 1, window))
        self.view = replace(
            self.view,
            collector=collector,
            graph=graph,
            names=_names(self._containers.values()),
            windows=tuple(self._kept),
            unattributed_bytes=self.view.unattributed_bytes + window.unattributed_bytes,
            lost_bytes=self.view.lost_bytes + window.lost_bytes,
            learned_at=now,
        )
        give_back()
        if len(self._kept) == 1:
            leave_files()

    def _plan(self, talk: Weights, between: Weights, kin: Mapping[str, Mapping[str, float]]) -> None:
        occupancy = self._outlets.occupancy().on(self._machine)
        self._take_counts()
        self._workload_index = self._workload_index.over_a_window(occupancy)
        movable = self._rested.movable(occupancy, move_options(self._containers.values()), kin)
        between = self._between = self._workload_index.with_silent(between)
        self._planner.consider(PlanningInput(occupancy, self._workload_index.expected(between), between, talk, movable))

    def _offer_moves(self, situation: PlanningInput) -> None:
        """From the planner's thread, by who sits where now."""
        self._outlets.moves(self._moves.offer(situation.at(self._outlets.occupancy().on(self._machine))))

    def _named(self, pod: str) -> str:
        return self.view.names.get(pod, pod)

    def _send(self, window: Window, collector: str) -> None:
        flows = self._deltas.take(MOST_FLOWS)
        if not flows and not window.unattributed_bytes and not window.lost_bytes:
            return
        self._outlets.traffic(
            pb.Traffic(
                seconds=window.seconds,
                scale=window.scale,
                flows=[pb.Flow(**flow._asdict()) for flow in flows],
                unattributed_bytes=window.unattributed_bytes,
                lost_bytes=window.lost_bytes,
                collector=collector,
            )
        )


def _names(containers: Iterable[local.LocalContainer]) -> dict[str, str]:
    return {container.pod: f"{container.namespace}/{container.pod_name}" for container in containers}
