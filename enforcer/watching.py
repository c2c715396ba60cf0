"""The observer's thread that watches traffic: windows in, the graph kept; kin and moves for the hook and flows for the
extender out.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path

from enforcer import kinship, learned, windows
from enforcer.config import Config
from enforcer.log import Log
from enforcer.moves import Rested, moves, wishes_of
from enforcer.observe.duty import DutyCycle
from enforcer.planner import Planner, Situation
from enforcer.windows import Live, Window
from placement.known import Weights
from placement.occupancy import Occupancy
from placement.topology import Machine
from placement.traffic import Deltas, Graph, Tally
from proto import local_pb2 as local
from proto import report_pb2 as pb

log = Log("observer.traffic")

MOST_FLOWS = 40
"""Flows in one Traffic message, the heaviest first: 4 KiB with pod uids; what is left adds up and waits."""

KEPT_WINDOWS = 64
"""Windows that `record` may still ask for."""

HALF_LIVES = 6
"""The graph's half-life in windows: what was seen in one window counts for half after six more."""


@dataclass(frozen=True, slots=True)
class View:
    """What is known now, for whoever asks. windows: the latest, numbered."""

    collector: str = "none"
    refusals: tuple[tuple[str, str], ...] = ()
    graph: Graph = field(default_factory=Graph)
    names: dict[str, str] = field(default_factory=dict)
    windows: tuple[tuple[int, Window], ...] = ()
    unattributed_bytes: int = 0
    lost_bytes: int = 0


@dataclass(slots=True)
class Outlets:
    """Where the watch sends what it learned. `plan` and `moves` are called from the planner's thread, the others from
    the watch's.
    """

    kin: Callable[[local.KinTable], None]
    plan: Callable[[local.Plan], None]
    moves: Callable[[local.Moves], None]
    traffic: Callable[[pb.Traffic], None]
    occupancy: Callable[[], Occupancy]


class Watching:
    """Run `run` in a thread; `hear` hands in the node's containers; `view` is the latest for readers."""

    def __init__(self, config: Config, machine: Machine, outlets: Outlets) -> None:
        self._config, self._outlets = config, outlets
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._containers: dict[str, local.LocalContainer] = {}
        self._heard = True
        self._roster = kinship.Roster()
        self._tally = Tally(half_life=HALF_LIVES * config.window_s)
        self._deltas = Deltas()
        self._rested = Rested()
        self._planner = Planner(
            machine,
            lambda plan: outlets.plan(learned.plan_to(plan)),
            lambda situation: outlets.moves(moves(machine, situation, int(config.move_budget))),
        )
        self._kept: deque[tuple[int, Window]] = deque(maxlen=KEPT_WINDOWS)
        self.view = View()

    def hear(self, message: local.Containers) -> None:
        with self._lock:
            if message.whole:
                self._containers = {}
            for key in message.gone:
                self._containers.pop(key, None)
            self._containers.update({one.id: one for one in message.containers})
            self._heard = True

    def stop(self) -> None:
        self._stop.set()
        self._planner.stop()

    def run(self) -> None:
        threading.Thread(target=self._planner.run, daemon=True).start()
        try:
            self._replay() if self._config.replay else self._watch()
        except windows.BadRecording as bad:
            log.error("the recording can't be replayed", error=bad)  # noqa: TRY400 - the message says all
        except Exception:
            log.exception("traffic is observed no more")

    def _watch(self) -> None:
        live = Live(DutyCycle(self._config.duty_cycle), time.monotonic)
        self.view = View(live.collector, tuple((one.name, one.reason) for one in live.refusals))
        try:
            end = time.monotonic() + self._config.window_s
            while not self._stop.is_set():
                if self._news():
                    live.hear(self._containers.values())
                due = min(live.step(time.monotonic()), end)
                self._stop.wait(max(0.0, min(due - time.monotonic(), 1.0)))
                if time.monotonic() >= end:
                    self._learn(live.window(time.monotonic()), live.collector)
                    end += self._config.window_s
        finally:
            live.close()

    def _replay(self) -> None:
        """A recording as if it were seen now, one window after the other, the last one for ever."""
        found = list(windows.recorded(Path(self._config.replay)))
        log.info("traffic is replayed", file=self._config.replay, windows=len(found))
        for one in chain(found, repeat(Window(self._config.window_s))):
            if self._stop.wait(min(one.seconds, self._config.window_s)):
                return
            self._news()
            self._learn(one, "replay")

    def _news(self) -> bool:
        """Takes over the containers told since the last time."""
        with self._lock:
            heard, self._heard = self._heard, False
            if heard:
                self._roster = self._roster.after(self._containers.values())
        return heard

    def _learn(self, window: Window, collector: str) -> None:
        now = time.monotonic()
        opted_in = dict.fromkeys(self._roster.present, True)
        ours = windows.opted_in_only(window, opted_in)
        self._tally.add(ours, now)
        self._deltas.add(ours)
        graph = self._tally.graph(now)
        talk, between = graph.weights(), graph.rolled_up(self._roster.workloads).weights()
        self._outlets.kin(learned.kin_table(kinship.learned(talk, between, self._roster)))
        self._plan(talk, between)
        self._tell(window, collector)
        number = self._kept[-1][0] + 1 if self._kept else 1
        self._kept.append((number, window))
        self.view = View(
            collector,
            self.view.refusals,
            graph,
            _names(self._containers.values()),
            tuple(self._kept),
            self.view.unattributed_bytes + window.unattributed_bytes,
            self.view.lost_bytes + window.lost_bytes,
        )

    def _plan(self, talk: Weights, between: Weights) -> None:
        occupancy = self._outlets.occupancy()
        self._roster = self._roster.over_a_window(occupancy)
        movable = self._rested.movable(occupancy, wishes_of(self._containers.values()))
        self._planner.consider(Situation(occupancy, self._roster.expected(between), between, talk, movable))

    def _tell(self, window: Window, collector: str) -> None:
        flows = self._deltas.take(MOST_FLOWS)
        if not flows and not window.unattributed_bytes and not window.lost_bytes:
            return
        self._outlets.traffic(
            pb.Traffic(
                seconds=window.seconds,
                scale=window.scale,
                flows=[pb.Flow(**one._asdict()) for one in flows],
                unattributed_bytes=window.unattributed_bytes,
                lost_bytes=window.lost_bytes,
                collector=collector,
            )
        )


def _names(containers: Iterable[local.LocalContainer]) -> dict[str, str]:
    return {one.pod: f"{one.namespace}/{one.pod_name}" for one in containers}
