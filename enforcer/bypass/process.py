"""The bypass: the process that stands in for the hook where the container runtime has no NRI. It follows the runtime
over CRI and writes the cgroups itself, a moment after a container's start.

No container waits for it, so it may use gRPC. One thread asks the runtime; the loop's owns the agent and writes.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from enforcer.bypass.changes import Change, ChangeKind, RuntimeSnapshot, changes
from enforcer.bypass.follower import RELIST_S, Follower
from enforcer.bypass.pins import Pins
from enforcer.hook.decision_records import names
from enforcer.hook.facts.pods import Claim
from enforcer.hook.hardware.changes import FAULTS
from enforcer.hook.ownership.checkpoint import grants_of
from enforcer.hook.wiring import Wiring
from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.errors import MachineError
from enforcer.nri.calls import OnAnswer, UpdateAnswer
from enforcer.nri.handlers import Updates
from enforcer.settings.config import Config
from enforcer.settings.options import configured, run_options
from numakin.placement.decide.decide import Decision, Reason
from numakin.process import log, supervisor
from numakin.process.loop import Loop
from numakin.process.pulse import BEAT_S, beat
from numakin.process.signals import beating, stop_on_signals
from numakin.process.threads import Threads
from numakin.wire import nri_pb2 as nri

logger = log.Log("bypass")

READ_BACK_S = 10.0
"""Cpusets are read back this often; the kubelet's CPU manager writes its own as often (its reconcile period)."""


class Bypass:
    """Wires the follower's polls to the agent, and the agent's answers to the cgroups."""

    def __init__(self, loop: Loop, config: Config, read_back_s: float = READ_BACK_S) -> None:
        """FAULTS when this node can't be worked on."""
        self._read_back_s = read_back_s
        self.wiring = Wiring(loop)
        self.wiring.set_up(config)
        self.wiring.carry_out = self._carry_out
        self.wiring.at_any_time = True
        self.wiring.register_again = self._start_over
        self._agent = self.wiring.agent
        tree = CgroupTree.discover(Path(config.procfs))
        self._migrates = tree.version() == 2
        self._agent.ledger.remark = self._remark
        self._pins = Pins(tree, lambda: self.wiring.machine)
        self._seen = RuntimeSnapshot()
        self._following = self.writing = False
        self._missing: set[str] = set()
        self.wiring.call_later(read_back_s, self._read_back)

    def polled(self, snapshot: RuntimeSnapshot | None) -> None:
        """What the follower saw; None: the runtime is away."""
        if snapshot is None:
            self._following = False
            self.wiring.registered(now=False)
            return
        before, self._seen = self._seen, snapshot
        if self._following:
            for change in changes(before, snapshot):
                container = change.container or nri.Container()
                with self._guarded(change.kind.name, **names(change.pod, container)):
                    self._want(self._answered(change))
        else:
            with self._guarded("SYNCHRONIZE"):
                self._synchronize()
        self._write_due()
        self._following = True
        self.wiring.registered(now=True)

    def _start_over(self, _reason: str) -> None:
        """While the runtime is away, at its next poll: what it has not listed would be forgotten."""
        if not self._following:
            return
        with self._guarded("SYNCHRONIZE"):
            self._synchronize()
        self._write_due()

    def _synchronize(self) -> None:
        containers = self._seen.containers
        updates = self._agent.synchronize(list(self._seen.sandboxes.values()), list(containers.values()))
        given = grants_of(self._agent.occupancy)
        self._pins.adopt(
            containers, {key: (grant.cpus, grant.mems) for key, grant in given.items() if not grant.externally_managed}
        )
        self._want(updates)

    @contextmanager
    def _guarded(self, event: str, **which: object) -> Iterator[None]:
        """A mistake of ours costs a container its pin, no more."""
        try:
            yield
        except Exception:
            self._agent.records.counts["failed"] += 1
            logger.exception("an event could not be handled", what=event, **which)

    def _answered(self, change: Change) -> Updates:
        """The agent's answer to what happened."""
        pod, container = change.pod, change.container
        if container is None:
            self._agent.stop_pod_sandbox(pod)
            return ()
        if change.kind is ChangeKind.CREATED:
            adjust, updates = self._agent.create_container(pod, container)
            self._agent.post_create_container(pod, container)
            if adjust is not None:
                self._pins.want(container, adjust.linux.resources.cpu)
            return updates
        if change.kind is ChangeKind.STOPPED:
            self._pins.forget(container.id)
            return self._agent.stop_container(pod, container)
        if change.kind is ChangeKind.RESIZED:
            return self._resized(pod, container)
        self._agent.start_container(pod, container)
        return ()

    def _resized(self, pod: nri.PodSandbox, container: nri.Container) -> Updates:
        updates = self._agent.update_container(pod, container, container.linux.resources)
        allocation = self._agent.occupancy.allocations.get(container.id)
        if allocation is not None and allocation.externally_managed:  # the resize named CPUs
            self._pins.forget(container.id)
        return updates

    def _want(self, updates: Updates) -> None:
        for update in updates:
            container = self._seen.containers.get(update.container_id)
            if container is not None:
                self._pins.want(container, update.linux.resources.cpu)

    def _write_due(self) -> list[str]:
        """Writes what can be written; the ids of what was refused."""
        self.wiring.record()
        due, refused = deque(self._pins.due), []
        while due:
            key = due.popleft()
            container = self._seen.containers.get(key)
            if container is None:
                self._pins.forget(key)
                continue
            try:
                self._write(container)
            except (MachineError, OSError) as error:
                refused.append(key)
                due.extend(other for other in self._leave_alone(container, str(error)) if other not in due)
        return refused

    def _leave_alone(self, container: nri.Container, why: str) -> list[str]:
        """The ids of those whose cpusets change with it."""
        pod, updates = self._seen.pod_of(container), []
        with self._guarded("REFUSED", **names(pod, container)):
            updates = self._agent.refused(pod, container, why)
            self._want(updates)
        return [update.container_id for update in updates if update.container_id in self._pins.due]

    def _write(self, container: nri.Container) -> None:
        # The kernel moves the container's pages before it returns.
        self.writing = True
        try:
            pin = self._pins.write(container)
        finally:
            self.writing = False
        if pin is None or not pin.written:
            return
        late_ms = (time.time_ns() - container.started_at) // 1_000_000
        logger.info(
            "cpuset written",
            **names(self._seen.pod_of(container), container),
            cpus=pin.cpus,
            mems=pin.mems,
            ms_after_start=late_ms,
        )

    def _read_back(self) -> None:
        self.wiring.call_later(self._read_back_s, self._read_back)
        self.wiring.check_hardware()  # the kernel itself narrows cpusets of cgroup v1 when a CPU goes
        for key, (cpus, mems) in list(self._pins.overwritten()):
            self._pins.forget(key)
            container = self._seen.containers.get(key)
            if container is None:
                continue
            pod = self._seen.pod_of(container)
            with self._guarded("READ_BACK", **names(pod, container)):
                self._want(self._agent.taken_over(pod, container, Claim(str(cpus), str(mems))))
        self._give_up_missing()
        self._write_due()
        self.wiring.publish_soon()

    def _give_up_missing(self) -> None:
        """A container that ran a whole round ago and still does, without a cgroup, as in a virtual machine."""
        running = {
            container.id for container in self._seen.containers.values() if container.state == nri.CONTAINER_RUNNING
        }
        missing = running.intersection(self._pins.due)
        for key in missing & self._missing:
            self._pins.forget(key)
            container = self._seen.containers[key]
            self._leave_alone(container, f"it runs, but its cgroup is not there: {container.linux.cgroups_path}")
        self._missing = missing

    def _carry_out(self, updates: Updates, on_answer: OnAnswer) -> None:
        """A release, or moves: written at once, whether the runtime is there or not. Before it has said what runs, what
        an earlier process pinned is known by the note alone, without its cgroups.
        """
        self._want(updates)
        refused, seen = self._write_due(), self._seen.containers
        unknown = not self._following and any(update.container_id not in seen for update in updates)
        error = "the runtime is away: it is carried out as soon as that says what runs" if unknown else ""
        on_answer(UpdateAnswer(tuple(update for update in updates if update.container_id in refused), error))

    def _remark(self, decision: Decision) -> tuple[Reason, ...]:
        if not decision.cpus and not decision.mems:
            return ()
        moved = "is moved" if decision.mems and self._migrates else "stays where it is"
        return (Reason("late", "", f"written once it runs: memory that it touched before {moved}"),)


class Inbox:
    """Hands what one thread puts in to a callback on the loop's."""

    def __init__(self, loop: Loop, bypass: Bypass) -> None:
        self._loop, self._bypass = loop, bypass
        self._items: deque[RuntimeSnapshot | None] = deque()
        self._wake_write, self._wake_read = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        loop.register(self._wake_read.fileno(), self._drain)

    def put(self, item: RuntimeSnapshot | None) -> None:
        self._items.append(item)
        with suppress(BlockingIOError):  # what it has not read yet wakes it
            self._wake_write.send(b"\0")

    def close(self) -> None:
        self._loop.unregister(self._wake_read.fileno())
        self._wake_write.close()
        self._wake_read.close()

    def _drain(self) -> None:
        self._wake_read.recv(1 << 12)
        while self._items:
            self._bypass.polled(self._items.popleft())


def _look_after(follower: Follower, bypass: Bypass) -> None:
    """A follower that gets nowhere follows nothing, and that must be seen."""
    bypass.wiring.call_later(READ_BACK_S, partial(_look_after, follower, bypass))
    if follower.stale:
        bypass.polled(None)


def _beat_while_writing(bypass: Bypass, stopping: threading.Event) -> None:
    """A loop that waits for the kernel does not hang."""
    if bypass.writing:
        beat(os.environ)
    stopping.wait(BEAT_S)


def main(arguments: Sequence[str], *, read_back_s: float = READ_BACK_S, relist_s: float = RELIST_S) -> int:
    supervisor.die_with_parent()
    loop = Loop()
    try:
        config = configured(run_options().parse_args(arguments))
        bypass = Bypass(loop, config, read_back_s)
    except FAULTS as error:
        logger.error("can't start", error=error)  # noqa: TRY400 - the message says all
        return supervisor.LEAVE
    logger.warning("bypass: containers are pinned a moment after their start, not before it; prefer NRI where there is")
    inbox = Inbox(loop, bypass)
    threads = Threads(logger.failure)
    follower = Follower(config.cri_socket, Path(config.procfs), inbox.put, threads, relist_s=relist_s)
    signals = stop_on_signals(loop)
    follower.start()
    bypass.wiring.call_later(READ_BACK_S, partial(_look_after, follower, bypass))
    beating(loop)
    pulse = threads.thread("pulse", lambda: _beat_while_writing(bypass, pulse.stopping))
    pulse.start()
    loop.run()
    follower.stop()
    pulse.stop()
    bypass.wiring.close()
    signals.close()
    logger.info("left the runtime")
    return 0
