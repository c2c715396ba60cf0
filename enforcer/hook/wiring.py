"""The agent's own wiring, the same however the runtime is followed: the control socket, what the observer is told and
tells, what people ask. Standard library and protobuf only: it is in the hook.
"""

from __future__ import annotations

import gc
import json
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

from enforcer.hook.agent import Agent
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.node import node_name, read_node
from enforcer.hook.outbox import Outbox
from enforcer.hook.ownership.recorder import Recorder
from enforcer.local.control import Control, LocalConnection
from enforcer.machine.errors import MachineError
from enforcer.nri.calls import OnAnswer, UpdateAnswer
from enforcer.nri.errors import UsageError
from enforcer.nri.handlers import Updates
from enforcer.nri.stats import Stats
from enforcer.settings.config import Config, ConfigError
from enforcer.settings.version import VERSION
from placement.model.errors import PlacementError
from placement.model.topology import Machine
from placement.optin.parsing import opted_in
from placement.state.occupancy import Occupancy
from process import log
from process.loop import Loop
from proto import convert
from proto import local_pb2 as local
from proto import nri_pb2 as nri

logger = log.Log("hook")

REFRESH_EVERY_S = 5.0
"""What is live on the NUMA nodes is read this often, between events."""

PUBLISH_AFTER_S = 0.02

FAULTS = (ConfigError, MachineError, PlacementError, OSError)
"""What keeps us from working on this node; each says why."""


class Wiring:
    """Wires an agent to the loop, the control socket and the observer.

    carry_out: gives the runtime, or the cgroups, changes that none of its events asked for. at_any_time: whether that
    is safe whatever the runtime is doing. confirmed_s_ago: since the runtime last showed that it has us, None where it
    does not or can't. register_again: for a runtime that has forgotten us, with the reason.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._session = uuid.uuid4().hex
        self._machine_told: dict[str, object] = {}
        self._agent: Agent | None = None
        self._outbox: Outbox | None = None
        self._recorder: Recorder | None = None
        self._control: Control | None = None
        self._publishing = False
        self._observer: tuple[float, str] | None = None
        self.carry_out: Callable[[Updates, OnAnswer], None] | None = None
        self.confirmed_s_ago: Callable[[], float | None] = lambda: None
        self.register_again: Callable[[str], None] = lambda _reason: None
        self.stats = Stats()
        self.at_any_time = False

    def set_up(self, config: Config) -> None:
        """Reads the machine and opens the control socket. FAULTS when either can't be."""
        log.set_up(config.log_level, config.log_format)
        node = read_node(config)
        self._machine = node.machine
        self._machine_told = {
            "isolated_cpus": str(node.machine.all_cpus - node.machine.cpus),
            "withheld_mems": str(node.machine.all_mems - node.machine.mems),
            "doubts": list(node.doubts),
        }
        self._agent = Agent(node, Nominations())
        self._agent.refresh()
        self._outbox = Outbox(self._agent, lambda: self.stats)
        self._recorder = Recorder(Path(config.run_dir), self._agent, partial(self._loop.call_later, 0))
        self._recorder.restore()
        self._start = local.Start(
            node=node_name(config),
            version=VERSION,
            session=self._session,
            machine=convert.machine_to(node.machine, node.reserved, node.rules),
            config=config.to_json(),
        )
        self._control = Control(Path(config.run_dir) / "hook.sock", self._loop, self._heard)
        self._loop.call_later(REFRESH_EVERY_S, self._refresh)
        logger.info(
            "machine read",
            node=node_name(config),
            numa_nodes=len(node.machine.numa_nodes),
            cpus=node.machine.cpus,
            mems=node.machine.mems,
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
        return self._machine

    def registered(self, *, now: bool) -> None:
        """Whether the runtime has us."""
        if self._outbox is not None:
            changed, self._outbox.registered = self._outbox.registered != now, now
            if changed:
                self._tell_attachment()
            self.publish_soon()

    def appeared(self, pod: nri.PodSandbox) -> None:
        """The observer asks the kubelet for the pod's devices while its images are looked at."""
        self.agent.sandboxes.appeared(pod)
        if self._control is not None and opted_in(pod.annotations):
            news = local.FromHook(appeared=local.Appeared(namespace=pod.namespace, name=pod.name))
            self._loop.call_later(0, partial(self._control.tell, news))

    def close(self) -> None:
        self.record()
        if self._control is not None:
            self._control.close()

    def publish_soon(self) -> None:
        """Some milliseconds later: a burst of containers is told at once, and none of them waits for the telling. What
        was given is written down as soon as the answers under way are out.
        """
        if self._recorder is not None:
            self._recorder.write_soon()
        if not self._publishing:
            self._publishing = True
            self._loop.call_later(PUBLISH_AFTER_S, self._publish)

    def record(self) -> None:
        """Writes down what was given before the runtime, or a cgroup, gets it: for what no container waits for."""
        if self._recorder is not None:
            self._recorder.write()

    def _publish(self) -> None:
        self._publishing = False
        if self._control is None or self._outbox is None:
            return
        self.agent.records.word()
        if self._control.observers:
            for message in self._outbox.news():
                self._control.tell(message)
        self._control.flush()
        if self._control.unsent:
            self._loop.call_later(0.05, self.publish_soon)

    def _tell_attachment(self) -> None:
        if self._control is not None:
            ago = self.confirmed_s_ago()
            self._control.tell(local.FromHook(attachment=local.Attachment(confirmed_seconds_ago=ago)))

    def _refresh(self) -> None:
        self.agent.refresh()
        self.publish_soon()
        if self._control is not None:
            self._control.keep()
            self._control.tell(
                local.FromHook(attachment=local.Attachment(confirmed_seconds_ago=self.confirmed_s_ago()))
            )
        gc.collect()
        self._loop.call_later(REFRESH_EVERY_S, self._refresh)

    def _heard(self, connection: LocalConnection, message: local.ToHook) -> None:
        kind = message.WhichOneof("message")
        if kind == "who":
            self._greet(connection, message.who.role)
        elif kind == "expect":
            self.agent.expect(message.expect)
            self.publish_soon()
        elif kind == "gone":
            self.agent.deleted(message.gone.pods)
            self.publish_soon()
        elif kind == "kin":
            self.agent.learned.weighed(message.kin)
        elif kind == "plan":
            self.agent.learned.planned(message.plan)
        elif kind == "devices":
            self.agent.pod_devices.learn(message.devices)
        elif kind == "moves":
            self._move(message.moves)
        elif kind == "health":
            self._observer = time.monotonic(), message.health.degraded
        elif kind == "untold":
            self.register_again(f"{len(message.untold.containers)} containers run that the runtime never told of")

    def _move(self, offer: local.Moves) -> None:
        """At once where that is safe, else with the next answer about a member."""
        if not self.at_any_time:
            self.agent.moving.later(offer)
            return
        for step in offer.steps:
            before = self.agent.occupancy
            updates = self.agent.moving.make(step, offer)
            self._push(updates, partial(self._moved, step, updates, before))
        self.publish_soon()

    def _moved(self, step: local.Moves.Step, updates: Updates, before: Occupancy, answer: UpdateAnswer) -> None:
        failed = updates if answer.error else answer.failed
        if failed:
            logger.warning("the runtime did not move containers", error=answer.error)
            self.agent.moving.take_back(step, [one.container_id for one in failed], before)
        self.publish_soon()

    def _greet(self, connection: LocalConnection, role: str) -> None:
        if role == "release":
            self._release(connection)
            return
        if role == "resume":
            self._resume(connection)
            return
        if role != "observer":
            self._answer(connection, self._status())
            return
        assert self._outbox is not None
        late = self._outbox.news()
        heard = self._control is not None and bool(self._control.observers)
        for one in late:
            if self._control is not None:
                self._control.tell(one)
        connection.observing = True
        connection.send(local.FromHook(start=self._start))
        for whole in self._outbox.whole(() if heard else late):
            connection.send(whole)
        self._tell_attachment()

    def _release(self, connection: LocalConnection) -> None:
        """Answered once the runtime has carried it out."""
        updates = self.agent.release()
        self.publish_soon()

        def carried_out(answer: UpdateAnswer) -> None:
            failed = [one.container_id for one in answer.failed]
            self._answer(connection, {"released": len(updates), "failed": failed, "error": answer.error})

        self._push(updates, carried_out)

    def _resume(self, connection: LocalConnection) -> None:
        """What runs is pinned at the Synchronize that follows."""
        self.agent.resume()
        self.record()
        self._answer(connection, {"resumed": True})
        self.register_again("resumed by an operator")

    def _push(self, updates: Updates, on_answer: OnAnswer) -> None:
        """on_answer: called with nothing amiss where there is nothing to do or nobody to do it."""
        self.record()
        if not updates or self.carry_out is None:
            on_answer(UpdateAnswer())
            return
        try:
            self.carry_out(updates, on_answer)
        except UsageError as error:
            on_answer(UpdateAnswer(error=str(error)))

    def _answer(self, connection: LocalConnection, answer: dict[str, object]) -> None:
        connection.send(local.FromHook(status=local.Status(json=json.dumps(answer))))

    def _observer_told(self) -> dict[str, object]:
        """seconds_ago: since its last sign of life, None where there was none. degraded: in its own words."""
        if self._observer is None:
            return {"seconds_ago": None, "degraded": ""}
        at, degraded = self._observer
        return {"seconds_ago": time.monotonic() - at, "degraded": degraded}

    def _status(self) -> dict[str, object]:
        agent, outbox = self.agent, self._outbox
        agent.records.word()
        return {
            "node": self._start.node,
            "registered": outbox is not None and outbox.registered,
            "confirmed_seconds_ago": self.confirmed_s_ago(),
            "observer": self._observer_told(),
            "released": agent.released,
            "not_written_down": self._recorder.failure if self._recorder is not None else "",
            "generation": agent.occupancy.generation,
            "machine": self._machine_told,
            "counts": dict(agent.records.counts),
            "devices": agent.pod_devices.rows,
            "containers": [
                {
                    "pod": f"{one.namespace}/{one.pod_name}",
                    "container": one.container_name,
                    "id": key,
                    "numa_nodes": one.numa_nodes,
                    "cpus": str(agent.occupancy.allocations[key].cpus) if key in agent.occupancy.allocations else "",
                    "mems": str(agent.occupancy.allocations[key].mems) if key in agent.occupancy.allocations else "",
                    "reasons": [
                        " ".join(filter(None, (why.what, why.number))) + f": {why.effect}" for why in one.reasons
                    ],
                }
                for key, one in agent.records.latest().items()
            ],
        }
