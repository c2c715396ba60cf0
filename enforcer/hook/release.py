"""One release on its way, as an operator has asked for it: it is called carried out when each container's cgroup shows
it, and failed, container by container, when its time is over.

A runtime that takes updates at any time is given them at once, and says what came of them. Any other one might hang
over that (`enforcer.nri.calls`), so it is registered with anew, and finds them in the answer to its Synchronize; a
plugin that the runtime launched can't register again, and waits for the next answer that may have updates. Of those
nothing is reported back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from enforcer.hook.agent import Agent
from enforcer.machine.cgroup import CpusAndMems
from enforcer.nri.calls import OnAnswer, UpdateAnswer
from enforcer.nri.handlers import Updates
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.process import log
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri

logger = log.Log("hook.release")

LOOK_EVERY_S = 0.25

STUCK_S = 20.0
"""Without one more container that has its CPUs back: a runtime takes less than a second for one."""

LONGEST_S = 100.0
"""Shorter than the command waits (`enforcer.cli.status.RELEASE_S`), which is then told what is missing."""


class ReleasingHost(Protocol):
    """What the process offers to a release. push: gives the runtime, or the cgroups, changes that none of its events
    asked for, after they are in the checkpoint; on_answer is called with no error where there is nothing to do, or
    no process to do it. at_any_time: whether that is safe whatever the runtime is doing. attached: whether it has us
    registered.
    """

    at_any_time: bool
    register_again: Callable[[str], None]

    @property
    def agent(self) -> Agent: ...
    @property
    def attached(self) -> bool: ...
    def push(self, updates: Updates, on_answer: OnAnswer) -> None: ...
    def record(self) -> None: ...
    def call_later(self, delay_s: float, callback: Callable[[], None]) -> object: ...


class Release:
    """answer: is called once, with how many containers have their CPUs back, and which have not."""

    def __init__(
        self,
        host: ReleasingHost,
        answer: Callable[[dict[str, object]], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host, self._answer, self._clock = host, answer, clock
        self._began = self._progressed = clock()
        self._waiting: dict[str, CpusAndMems] = {}
        self._released = 0
        self._heard = self._confirmed = self._answered = False
        """heard: the runtime's answer to the updates; confirmed: it has none to complain of."""

    def start(self) -> None:
        host = self._host
        attached, updates = host.attached, host.agent.release()
        self._waiting = {update.container_id: _asked(update) for update in updates}
        if host.at_any_time:
            host.push(updates, self._carried_out)
            if not self._heard:
                self._look()
            return
        host.record()
        if self._waiting and not attached:
            self._finish("the runtime does not have us registered: it is carried out as soon as it has")
            return
        host.agent.moves.take_along(updates)
        host.register_again("released by an operator: what runs is given back in the answer to Synchronize")
        self._look()

    def _carried_out(self, answer: UpdateAnswer) -> None:
        self._heard, self._confirmed = True, not answer.error
        if self._answered:
            return
        self._note_open()
        if answer.error or any(update.container_id in self._waiting for update in answer.failed):
            self._finish(answer.error)
        else:
            self._look()

    def _look(self) -> None:
        """Again and again, until no container is waited for or the time is over."""
        if self._answered:
            return
        self._note_open()
        now = self._clock()
        if not self._waiting:
            self._finish()
        elif not self._host.agent.ledger.released:
            self._finish("it was resumed before it was carried out")
        elif now - self._progressed > STUCK_S or now - self._began > LONGEST_S:
            self._finish("the runtime did not carry it out in time: see its log, and release again")
        else:
            self._host.call_later(LOOK_EVERY_S, self._look)

    def _note_open(self) -> None:
        residents = self._host.agent.residents.now()
        for key, asked in list(self._waiting.items()):
            resident = residents.get(key)
            if resident is None and not (self._host.attached or self._confirmed):
                continue
            if resident is not None and not self._is_open(resident, asked):
                continue
            del self._waiting[key]
            self._progressed = self._clock()
            self._released += resident is not None

    def _is_open(self, resident: local.LocalContainer, asked: CpusAndMems) -> bool:
        node = self._host.agent.ledger.node
        now = node.cpuset_now(resident.cgroups_path)
        if now is None:  # before its start there is no cgroup, and at its start it is looked at
            return self._confirmed or not resident.pid
        above = node.widest_cpuset(resident.cgroups_path) or asked
        cpus, mems = now  # none: nothing of its own
        return (not cpus or asked[0] & above[0] <= cpus) and (not mems or asked[1] & above[1] <= mems)

    def _finish(self, error: str = "") -> None:
        self._answered = True
        residents, ledger = self._host.agent.residents.now(), self._host.agent.ledger
        failed = []
        for key in self._waiting:
            resident = residents.get(key, local.LocalContainer())
            now = ledger.node.cpuset_now(resident.cgroups_path) if resident.cgroups_path else None
            name = f"{resident.namespace}/{resident.pod_name} {resident.name}" if resident.pod else ""
            failed.append({"id": key, "name": name, "cpus": str(now[0]) if now is not None else ""})
            logger.error("not released", id=key[:12], name=name, cpus=now[0] if now is not None else "not known")
        self._answer({"released": self._released, "failed": failed, "error": error})


def _asked(update: nri.ContainerUpdate) -> CpusAndMems:
    cpu = update.linux.resources.cpu
    return CpuSet.parse(cpu.cpus), NumaSet.parse(cpu.mems)
