"""Wires an agent to the loop, the hook's own socket and the observer: the same however the runtime is followed.
Standard library and protobuf only: it is in the hook.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path

from enforcer.hook import status_report
from enforcer.hook.agent import Agent
from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.hardware.changes import HardwareChanges
from enforcer.hook.hardware.node import node_name
from enforcer.hook.local_requests import LocalRequests, log_failure
from enforcer.hook.outbox import Outbox
from enforcer.hook.ownership.recorder import Recorder, spare_of
from enforcer.local.control import Control, LocalConnection
from enforcer.nri.calls import OnAnswer, UpdateAnswer
from enforcer.nri.errors import UsageError
from enforcer.nri.handlers import Updates
from enforcer.nri.stats import Stats
from enforcer.settings.config import Config
from numakin.placement.model.topology import Machine
from numakin.placement.optin.parsing import opted_in
from numakin.placement.state.occupancy import Allocation
from numakin.process import log
from numakin.process.loop import Burst, Loop, Timer
from numakin.process.version import VERSION
from numakin.wire import convert
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri

logger = log.Log("hook")

HARDWARE_EVERY_S = 0.5
"""Whether CPUs or memory have gone or come is looked at this often: 60 microseconds."""

REFRESH_EVERY_S = 5.0
"""What is live on the NUMA nodes is read this often, between events."""

UNSENT_WAITS_S = 2.0
"""So long what a look found unsent waits for an answer that may have it, where the runtime takes updates with answers
alone; then the hook registers again.
"""

UNSENT_EVERY_S = 60.0
"""How often that may be for this reason."""

READ_BACK_S = 10.0
"""The containers' cgroups are compared with what they were given this often, between events."""

OLD_GARBAGE_EVERY = 12
"""Refreshes, a minute."""

PREPARE_QUIET_S = 0.001
"""Without an event before a decision is prepared: in a burst the next create waits already, and makes it void."""

PREPARE_EVERY_S = 0.5
"""How often prepared decisions are compared with what is known, while there are any; and whenever that changes here."""

REST_EVERY_S = 0.02
"""A reader that has not taken all that it was sent gets more this often: a socket takes some 200 KB at once."""

TIMER = "timer"
"""What is done between events, among them."""

QUIET_READINGS = 3
"""Refreshes, 15 s, for which what was found waits for an answer of the runtime's."""


class Wiring:
    """The `Host` of local requests.

    carry_out: gives the runtime, or the cgroups, changes that none of its events asked for. confirmed_s_ago: since the
    runtime last showed that it has us, None where it does not or can't. register_again: for a runtime that has
    forgotten us, with the reason.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._session = os.urandom(16).hex()
        self._machine_facts: dict[str, object] = {}
        self._hardware: HardwareChanges | None = None
        self._agent: Agent | None = None
        self._outbox: Outbox | None = None
        self._recorder: Recorder | None = None
        self._control: Control | None = None
        self._requests = LocalRequests(self)
        self._publishing = Burst(loop, partial(self._call, self._publish))
        self._refreshed = 0
        self._found = 0
        self._registered_again_at = float("-inf")
        self._registering_again: Timer | None = None
        self._lacking = False
        self._preparing: Timer | None = None
        self._sending_rest: Timer | None = None
        self.carry_out: Callable[[Updates, OnAnswer], None] | None = None
        self.confirmed_s_ago: Callable[[], float | None] = lambda: None
        self.register_again: Callable[[str], None] = lambda _reason: None
        self.stats = Stats()
        self.at_any_time = False

    def set_up(self, config: Config) -> None:
        """Reads the machine and opens the control socket. FAULTS when either can't be."""
        log.set_up(config.log_level, config.log_format)
        self._config, self._hardware = config, HardwareChanges(config)
        node = self._hardware.read()
        self._describe(node)
        self._agent = Agent(node, Nominations())
        self._agent.refresh()
        self._outbox = Outbox(self._agent, lambda: self.stats)
        run_dir = Path(config.run_dir)
        self._recorder = Recorder(run_dir, spare_of(run_dir), self._agent, partial(self.call_later, 0))
        self._recorder.restore()
        self._control = Control(run_dir / "hook.sock", self._loop, self._received)
        self.call_later(REFRESH_EVERY_S, self._refresh)
        self.call_later(HARDWARE_EVERY_S, self._watch_hardware)
        logger.info(
            "machine read",
            node=node_name(config),
            numa_nodes=len(node.machine.numa_nodes),
            cpus=node.machine.cpus,
            mems=node.machine.mems,
        )

    def _describe(self, node: NodeFacts) -> None:
        """For observers and for people."""
        machine = node.machine
        self._machine_facts = {
            "isolated_cpus": str(machine.all_cpus - machine.cpus),
            "withheld_mems": str(machine.all_mems - machine.mems),
            "doubts": list(node.doubts),
        }
        self._start = local.Start(
            node=node_name(self._config),
            version=VERSION,
            session=self._session,
            machine=convert.machine_to(machine, node.reserved, node.rules),
            config=self._config.to_json(),
        )

    @property
    def ready(self) -> bool:
        """Whether there is an agent."""
        return self._agent is not None

    @property
    def agent(self) -> Agent:
        if self._agent is None:
            raise RuntimeError("an event came before the configuration")
        return self._agent

    @agent.setter
    def agent(self, stand_in: Agent) -> None:
        self._agent = stand_in

    @property
    def machine(self) -> Machine:
        """As it is now."""
        return self.agent.ledger.machine

    def registered(self, *, now: bool) -> None:
        """Whether the runtime has us."""
        if self._outbox is not None:
            changed, self._outbox.registered = self._outbox.registered != now, now
            if changed:
                self._send_attachment()
            self.publish_soon()

    @property
    def attached(self) -> bool:
        """Whether the runtime has us registered."""
        return self._outbox is not None and self._outbox.registered

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """A fault of ours in it costs the runtime no answer, and no other timer its turn."""
        return self._loop.call_later(delay_s, partial(self._call, callback))

    def _call(self, callback: Callable[[], None]) -> None:
        with self._guarded():
            callback()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.stats.handler_errors[TIMER] += 1
            logger.exception("what is done between events failed")

    def appeared(self, pod: nri.PodSandbox) -> None:
        """The observer asks the kubelet for the pod's devices while its images are pulled."""
        self.agent.run_pod_sandbox(pod)
        if self.agent.ledger.prepared.waiting:
            self._prepare_in(PREPARE_QUIET_S)
        if self._control is not None and opted_in(pod.annotations):
            message = local.FromHook(appeared=local.Appeared(namespace=pod.namespace, name=pod.name))
            self.call_later(0, partial(self._control.broadcast, message))

    def close(self) -> None:
        self.record()
        if self._control is not None:
            self._control.close()

    def publish_soon(self) -> None:
        """Some milliseconds later: a report costs one or two, in which the next event of a burst would wait."""
        if self._agent is not None and self._agent.ledger.prepared.waiting:
            self._prepare_in(PREPARE_QUIET_S)
        self._publishing.event()

    def _prepare(self) -> None:
        """One decision, and soon the next, while there is a pod whose first container is still to come."""
        more = self.agent.prepare()
        if self.agent.ledger.prepared.waiting:
            self._prepare_in(0.0 if more else PREPARE_EVERY_S)

    def _prepare_in(self, delay_s: float) -> None:
        if self._preparing is not None:
            self._preparing.cancel()
        self._preparing = self.call_later(delay_s, self._prepare)

    def record(self) -> None:
        """Writes the checkpoint before the runtime, or a cgroup, gets what is new: for what no container waits for."""
        if self._recorder is not None:
            self._recorder.write()

    def note_event(self) -> None:
        """From the runtime: it has carried out the answers before this event."""
        if self._recorder is not None:
            self._recorder.note_event()

    def push(self, updates: Updates, on_answer: OnAnswer) -> None:
        """Sends updates that no event asked for; on_answer is called with what became of them."""
        self.record()
        if not updates or self.carry_out is None:
            on_answer(UpdateAnswer())
            return
        recorder, held = self._recorder, self.agent.occupancy.allocations
        if recorder is not None:
            recorder.sending()

        def answered(answer: UpdateAnswer) -> None:
            if recorder is not None:
                recorder.answered()
            self._tell_anew(updates, held)
            on_answer(answer)
            self.publish_soon()

        try:
            self.carry_out(updates, answered)
        except UsageError as error:
            answered(UpdateAnswer(error=str(error)))

    def _tell_anew(self, updates: Updates, held: Mapping[str, Allocation]) -> None:
        """For containers that an event has given something else since: the runtime may have carried out its answer
        before these updates, which are as of then. held: the allocations of then.
        """
        now = self.agent.occupancy.allocations
        changed = [it for it in updates if now.get(it.container_id) != held.get(it.container_id)]
        if changed:
            self.agent.moves.take_along(changed)
            self.send_unsent()

    def start_observer(self, connection: LocalConnection) -> None:
        """An observer that starts: others first get what they lack, it gets everything."""
        assert self._outbox is not None
        assert self._control is not None
        changes, watched = self._outbox.changes(), bool(self._control.observers)
        for message in changes:
            self._control.broadcast(message)
        connection.observing = True
        connection.send(local.FromHook(start=self._start))
        for message in self._outbox.whole(() if watched else changes):
            connection.send(message)
        self._send_attachment()

    def check_hardware(self) -> None:
        """Takes the machine over as it is now, where CPUs or memory have gone or come."""
        node = self._hardware.changed() if self._hardware is not None else None
        if node is None:
            return
        self.push_when_safe(self.agent.rehoming.onto(node))
        self._describe(node)
        self._introduce()

    def push_when_safe(self, updates: Updates) -> None:
        """At once, or with the next answer to a runtime that can't take updates whatever it is doing."""
        if self.at_any_time:
            self.push(updates, log_failure)
        else:
            self.agent.moves.take_along(updates)

    def send_unsent(self) -> None:
        """What an event or a message changed for others, and its answer could not have: where that is safe."""
        if self.at_any_time and self.agent.moves.unsent:
            self.call_later(0, self._send_unsent)

    def _send_unsent(self) -> None:
        self.push(self.agent.moves.unsent_updates(), log_failure)

    def _introduce(self) -> None:
        """Every observer receives the machine and everything on it anew."""
        if self._control is not None and self._outbox is not None and self._control.observers:
            self._control.broadcast(local.FromHook(start=self._start))
            for message in self._outbox.whole(self._outbox.changes()):
                self._control.broadcast(message)
            self._control.flush()
        self.publish_soon()

    def _watch_hardware(self) -> None:
        self.call_later(HARDWARE_EVERY_S, self._watch_hardware)
        self.check_hardware()

    def status(self) -> dict[str, object]:
        """For people."""
        return {
            "node": self._start.node,
            "registered": self.attached,
            "confirmed_seconds_ago": self.confirmed_s_ago(),
            "observer": self._requests.observer,
            "not_written_down": self._recorder.failure if self._recorder is not None else "",
            "machine": self._machine_facts,
            **status_report.of(self.agent),
        }

    def _publish(self) -> None:
        """In steps, between which an event may come; the checkpoint is written first, and until then a container's mark
        says what it was given.
        """
        if self._recorder is not None:
            self._recorder.write_soon()
        if self._agent is not None:
            self._agent.records.compose()
        if self._control is None or self._outbox is None:
            return
        self.call_later(0, self._send_changes)

    def _send_changes(self) -> None:
        assert self._control is not None
        assert self._outbox is not None
        lacking, self._lacking = self._lacking, True
        if lacking:
            self._introduce()
        elif self._control.observers:
            for message in self._outbox.changes():
                self._control.broadcast(message)
        self._lacking = False
        self._control.flush()
        self._send_rest()

    def _received(self, connection: LocalConnection, message: local.ToHook) -> None:
        """An answer may be more than a socket takes at once."""
        try:
            self._requests.received(connection, message)
        finally:
            self._send_rest()

    def _send_rest(self) -> None:
        """To readers that have not taken all of it yet: soon, until they have."""
        if self._control is not None and self._control.unsent and self._sending_rest is None:
            self._sending_rest = self.call_later(REST_EVERY_S, self._go_on_sending)

    def _go_on_sending(self) -> None:
        assert self._control is not None
        self._sending_rest = None
        self._control.flush()
        self._send_rest()

    def _send_attachment(self) -> None:
        if self._control is not None:
            attachment = local.Attachment(confirmed_seconds_ago=self.confirmed_s_ago())
            self._control.broadcast(local.FromHook(attachment=attachment))

    def _refresh(self) -> None:
        """Steps, between which events may come."""
        self.call_later(REFRESH_EVERY_S, self._refresh)
        self._run(
            chain(
                self.agent.refreshes,
                (self._settle, self._improve, self._keep, self._collect_garbage, self.publish_soon),
            )
        )

    def _run(self, steps: Iterator[Callable[[], None]]) -> None:
        """One, and soon the next; one that fails costs no other."""
        with self._guarded():
            step = next(steps, None)
            if step is None:
                return
            step()
        self.call_later(0, partial(self._run, steps))

    def read_back(self, every_s: float) -> None:
        """Reads what the cgroups have, again and again: a runtime does not say what became of an answer's updates."""
        self.call_later(every_s, partial(self.read_back, every_s))
        if self._agent is not None and self.attached:
            self._agent.read_back.begin()
            self._read_back_some(self._agent)

    def _read_back_some(self, agent: Agent) -> None:
        """Steps, between which events may come."""
        try:
            if updates := agent.read_back.step():
                self.push_when_safe(updates)
        finally:
            if agent.read_back.under_way:
                self.call_later(0, partial(self._read_back_some, agent))
            else:
                self.publish_soon()

    def _settle(self) -> None:
        """For members that are let out or come home, or that cache domains take in; and what no answer could have."""
        if updates := self.agent.ledger.settle():
            self.push_when_safe(updates)
        self.send_unsent()
        if self.agent.moves.unsent and not self.at_any_time and self._registering_again is None:
            wait = max(UNSENT_WAITS_S, self._registered_again_at + UNSENT_EVERY_S - time.monotonic())
            self._registering_again = self.call_later(wait, self._register_again)

    def _register_again(self) -> None:
        """Where no event came meanwhile: the answer to the runtime's Synchronize may have updates too."""
        self._registering_again = None
        if self.agent.moves.unsent:
            self._registered_again_at = time.monotonic()
            self.register_again("cpusets that containers are to have wait for an answer that may have them")

    def _improve(self) -> None:
        """For members that could be better off by now. A runtime that takes updates in answers alone, and where nothing
        happens, is asked for its Synchronize, whose answer has them.
        """
        second_best = self.agent.moves.second_best
        if not second_best.found:
            self._found = 0
        elif self.at_any_time:
            self.push(second_best.improve(), log_failure)
        else:
            self._found += 1
            if self._found == QUIET_READINGS:
                self.register_again("members that had no room could be placed better now")

    def _keep(self) -> None:
        if self._control is not None:
            self._control.keep()
        self._send_attachment()

    def _collect_garbage(self) -> None:
        """The old generation takes half a millisecond with 200 containers, and hardly ever has any."""
        self._refreshed += 1
        gc.collect(2 if self._refreshed % OLD_GARBAGE_EVERY == 0 else 1)
