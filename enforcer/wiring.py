"""The agent's own wiring, the same however the runtime is followed: the control socket, what the observer is told and
tells, what people ask. Standard library and protobuf only: it is in the hook.
"""

from __future__ import annotations

import gc
import json
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from enforcer import log
from enforcer.agent import Agent
from enforcer.config import Config, ConfigError
from enforcer.control import Connection, Control
from enforcer.machine.errors import MachineError
from enforcer.node import node_name, read_node
from enforcer.nri.calls import OnAnswer, UpdateAnswer
from enforcer.nri.errors import UsageError
from enforcer.nri.handlers import Updates
from enforcer.nri.socket_loop import Loop
from enforcer.outbox import Outbox
from enforcer.promises import Promises
from enforcer.version import VERSION
from placement.errors import PlacementError
from placement.occupancy import Occupancy
from placement.optin import opted_in
from placement.topology import Machine
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
    is safe whatever the runtime is doing.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._session = uuid.uuid4().hex
        self._agent: Agent | None = None
        self._outbox: Outbox | None = None
        self._control: Control | None = None
        self._publishing = False
        self.carry_out: Callable[[Updates, OnAnswer], None] | None = None
        self.at_any_time = False

    def set_up(self, config: Config) -> None:
        """Reads the machine and opens the control socket. FAULTS when either can't be."""
        log.set_up(config.log_level, config.log_format)
        node = read_node(config)
        self._machine = node.machine
        self._agent = Agent(node, Promises())
        self._agent.refresh()
        self._outbox = Outbox(self._agent)
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
            self._outbox.registered = now
            self.publish_soon()

    def appeared(self, pod: nri.PodSandbox) -> None:
        """The observer asks the kubelet for the pod's devices while its images are looked at."""
        if self._control is not None and opted_in(pod.annotations):
            news = local.FromHook(appeared=local.Appeared(namespace=pod.namespace, name=pod.name))
            self._loop.call_later(0, partial(self._control.tell, news))

    def close(self) -> None:
        if self._control is not None:
            self._control.close()

    def publish_soon(self) -> None:
        """Some milliseconds later: a burst of containers is told at once, and none of them waits for the telling."""
        if not self._publishing:
            self._publishing = True
            self._loop.call_later(PUBLISH_AFTER_S, self._publish)

    def _publish(self) -> None:
        self._publishing = False
        if self._control is None or self._outbox is None:
            return
        if self._control.observers:
            for message in self._outbox.news():
                self._control.tell(message)
        self._control.flush()
        if self._control.unsent:
            self._loop.call_later(0.05, self.publish_soon)

    def _refresh(self) -> None:
        self.agent.refresh()
        self.publish_soon()
        gc.collect()
        self._loop.call_later(REFRESH_EVERY_S, self._refresh)

    def _heard(self, connection: Connection, message: local.ToHook) -> None:
        kind = message.WhichOneof("message")
        if kind == "who":
            self._greet(connection, message.who.role)
        elif kind == "expect":
            self.agent.expect(message.expect)
            self.publish_soon()
        elif kind == "kin":
            self.agent.learned.weighed(message.kin)
        elif kind == "plan":
            self.agent.learned.planned(message.plan)
        elif kind == "devices":
            self.agent.equipment.learn(message.devices)
        elif kind == "moves":
            self._move(message.moves.steps)

    def _move(self, steps: Sequence[local.Moves.Step]) -> None:
        """At once where that is safe, else with the next answer about a member."""
        if not self.at_any_time:
            self.agent.moving.later(steps)
            return
        for step in steps:
            before = self.agent.occupancy
            updates = self.agent.moving.make(step)
            self._push(updates, partial(self._moved, updates, before))
        self.publish_soon()

    def _moved(self, updates: Updates, before: Occupancy, answer: UpdateAnswer) -> None:
        failed = updates if answer.error else answer.failed
        if failed:
            logger.warning("the runtime did not move containers", error=answer.error)
        self.agent.moving.take_back([one.container_id for one in failed], before)
        self.publish_soon()

    def _greet(self, connection: Connection, role: str) -> None:
        if role == "release":
            self._release(connection)
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

    def _release(self, connection: Connection) -> None:
        """Answered once the runtime has carried it out."""
        updates = self.agent.release()
        self.publish_soon()

        def carried_out(answer: UpdateAnswer) -> None:
            failed = [one.container_id for one in answer.failed]
            self._answer(connection, {"released": len(updates), "failed": failed, "error": answer.error})

        self._push(updates, carried_out)

    def _push(self, updates: Updates, on_answer: OnAnswer) -> None:
        """on_answer: called with nothing amiss where there is nothing to do or nobody to do it."""
        if not updates or self.carry_out is None:
            on_answer(UpdateAnswer())
            return
        try:
            self.carry_out(updates, on_answer)
        except UsageError as error:
            on_answer(UpdateAnswer(error=str(error)))

    def _answer(self, connection: Connection, answer: dict[str, object]) -> None:
        connection.send(local.FromHook(status=local.Status(json=json.dumps(answer))))

    def _status(self) -> dict[str, object]:
        agent, outbox = self.agent, self._outbox
        return {
            "node": self._start.node,
            "registered": outbox is not None and outbox.registered,
            "generation": agent.occupancy.generation,
            "counts": dict(agent.accounts.counts),
            "devices": agent.equipment.rows,
            "containers": [
                {
                    "pod": f"{one.namespace}/{one.pod_name}",
                    "container": one.container_name,
                    "id": key,
                    "numa_nodes": one.numa_nodes,
                    "cpus": str(agent.occupancy.holdings[key].cpus) if key in agent.occupancy.holdings else "",
                    "mems": str(agent.occupancy.holdings[key].mems) if key in agent.occupancy.holdings else "",
                    "reasons": [
                        " ".join(filter(None, (why.what, why.number))) + f": {why.effect}" for why in one.reasons
                    ],
                }
                for key, one in agent.accounts.latest().items()
            ],
        }
