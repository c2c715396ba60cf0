"""The hook: the process that answers the container runtime. One thread, one blocking loop, standard library and
protobuf only, since every container of the node waits for it.

    python -m enforcer.hook [the options of `numakin-enforcer run`]
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from enforcer import log, supervisor
from enforcer.agent import Agent, Node
from enforcer.config import Config, ConfigError, merged
from enforcer.control import Connection, Control
from enforcer.machine.errors import MachineError
from enforcer.node import node_name, read_node
from enforcer.nri.calls import OnAnswer, UpdateAnswer
from enforcer.nri.errors import UsageError
from enforcer.nri.events import Runtime
from enforcer.nri.handlers import Handlers, Updates
from enforcer.nri.identity import Identity
from enforcer.nri.plugin import Plugin
from enforcer.nri.session import Stage
from enforcer.nri.socket_loop import Loop
from enforcer.nri.transport import External, Launched, launched_by_runtime
from enforcer.options import configured, run_options
from enforcer.outbox import Outbox
from enforcer.promises import Promises
from enforcer.version import VERSION
from placement.cpuset import CpuSet
from placement.errors import PlacementError
from placement.optin import opted_in
from placement.topology import LOCAL_DISTANCE, Machine, NumaNode
from proto import convert
from proto import local_pb2 as local
from proto import nri_pb2 as nri

logger = log.Log("hook")

REFRESH_EVERY_S = 5.0
"""What is live on the NUMA nodes is read this often, between events."""

PUBLISH_AFTER_S = 0.02

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

FAULTS = (ConfigError, MachineError, PlacementError, OSError)
"""What keeps us from working on this node; each says why."""


class Hook:
    """Wires the loop, the NRI plugin, the agent and the control socket."""

    def __init__(self, loop: Loop, flags: Mapping[str, object], refusal: str = "") -> None:
        """refusal: why this plugin can't work, known before the runtime asks."""
        self._loop, self._refusal = loop, refusal
        self._flags = flags
        self._config = Config()
        self._session = uuid.uuid4().hex
        self._agent: Agent | None = None
        self._outbox: Outbox | None = None
        self._control: Control | None = None
        self._publishing = False
        self.unsolicited: Callable[[Updates, OnAnswer], None] | None = None

    def set_up(self, config: Config) -> None:
        """Reads the machine and opens the control socket. MachineError, OSError when either can't be."""
        self._config = config
        log.set_up(config.log_level, config.log_format)
        node = read_node(config)
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

    def handlers(self) -> Handlers:
        """What the NRI session calls; every answer is followed by what it changed, for the observer."""
        return Handlers(
            configure=self._configure,
            synchronize=self._then(lambda sandboxes, containers: self.agent.synchronize(sandboxes, containers)),
            create_container=self._then(lambda pod, container: self.agent.create_container(pod, container)),
            update_container=self._then(lambda pod, one, asked: self.agent.update_container(pod, one, asked)),
            stop_container=self._then(lambda pod, container: self.agent.stop_container(pod, container)),
            start_container=self._then(lambda pod, container: self.agent.start_container(pod, container)),
            post_start_container=self._then(self._started),
            remove_container=self._then(lambda pod, container: self.agent.remove_container(pod, container)),
            run_pod_sandbox=self._appeared,
            stop_pod_sandbox=self._then(lambda pod: self.agent.stop_pod_sandbox(pod)),
            remove_pod_sandbox=self._then(lambda pod: self.agent.stop_pod_sandbox(pod)),
        )

    @property
    def agent(self) -> Agent:
        if self._agent is None:
            raise RuntimeError("an event came before the configuration")
        return self._agent

    def staged(self, stage: Stage) -> None:
        """Registered is: configured. Containerd 1.7 never synchronizes a plugin that it launched."""
        if self._outbox is not None:
            self._outbox.registered = stage in (Stage.CONFIGURED, Stage.SYNCHRONIZED)
            self._publish_soon()

    def close(self) -> None:
        if self._control is not None:
            self._control.close()

    def _configure(self, text: str, runtime: Runtime) -> None:
        """A runtime's drop-in file configures a hook that it launched; one that we dialled sends nothing."""
        logger.info("the runtime configures us", runtime=runtime.name, version=runtime.version, nri=runtime.nri_version)
        if self._agent is None:
            try:
                self.set_up(self._with_drop_in(text))
            except FAULTS as error:
                # A refusal is seen in the runtime's log, unlike ours; but containerd 1.7 does not start at all then.
                if not runtime.version.removeprefix("v").startswith("1."):
                    raise
                self._stand_by(error)
                return
        # Runtimes tell NRI's own version since 0.12, which brought memory policies.
        self.agent.memory_policies = bool(runtime.nri_version)

    def _stand_by(self, error: Exception) -> None:
        """Answers every event with "no adjustment"."""
        logger.error("standing by: nothing is pinned until this is mended", error=error)
        everything = NumaNode(0, CpuSet.of(range(os.cpu_count() or 1)), 0, {0: LOCAL_DISTANCE})
        self._agent = Agent(Node(Machine((everything,)), CpuSet(), lambda _path: None, dict), Promises())
        self._agent.release()

    def _with_drop_in(self, text: str) -> Config:
        if self._refusal:
            raise ConfigError(self._refusal)
        config = merged(self._flags, os.environ, text, "the runtime's drop-in file")
        if config.run_dir != merged(self._flags, os.environ).run_dir:
            raise ConfigError(
                "the runtime's drop-in file: run-dir can't be set there: the lock is taken before it is read"
            )
        return config

    def _started(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        updates = self.agent.post_start_container(pod, container)
        if updates and self.unsolicited is not None:
            self.unsolicited(updates, _log_failure)

    def _appeared(self, pod: nri.PodSandbox) -> None:
        """The observer asks the kubelet for the pod's devices while its images are looked at."""
        if self._control is not None and opted_in(pod.annotations):
            news = local.FromHook(appeared=local.Appeared(namespace=pod.namespace, name=pod.name))
            self._loop.call_later(0, partial(self._control.tell, news))

    def _then(self, handler: Callable[Given, Answer]) -> Callable[Given, Answer]:
        """The handler; what it changed is published once the runtime has its answer."""

        def handle(*given: Given.args, **named: Given.kwargs) -> Answer:
            try:
                return handler(*given, **named)
            finally:
                self._publish_soon()

        return handle

    def _publish_soon(self) -> None:
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
            self._loop.call_later(0.05, self._publish_soon)

    def _refresh(self) -> None:
        self.agent.refresh()
        self._publish_soon()
        gc.collect()
        self._loop.call_later(REFRESH_EVERY_S, self._refresh)

    def _heard(self, connection: Connection, message: local.ToHook) -> None:
        kind = message.WhichOneof("message")
        if kind == "who":
            self._greet(connection, message.who.role)
        elif kind == "expect":
            self.agent.expect(message.expect)
            self._publish_soon()
        elif kind == "kin":
            self.agent.learned.weighed(message.kin)
        elif kind == "plan":
            self.agent.learned.planned(message.plan)
        elif kind == "devices":
            self.agent.equipment.learn(message.devices)

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
        self._publish_soon()

        def carried_out(answer: UpdateAnswer) -> None:
            failed = [one.container_id for one in answer.failed]
            self._answer(connection, {"released": len(updates), "failed": failed, "error": answer.error})

        if not updates or self.unsolicited is None:
            carried_out(UpdateAnswer())
            return
        try:
            self.unsolicited(updates, carried_out)
        except UsageError as error:
            carried_out(UpdateAnswer(error=str(error)))

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


def _log_failure(answer: UpdateAnswer) -> None:
    if answer.error or answer.failed:
        failed = " ".join(one.container_id for one in answer.failed)
        logger.warning("the runtime did not update containers", error=answer.error, failed=failed)


def _stop_on_signals(loop: Loop) -> tuple[socket.socket, socket.socket]:
    """A signal ends the loop's wait by a byte on a pair of sockets, which the caller keeps."""
    told, heard = socket.socketpair()
    for one in (told, heard):
        one.setblocking(False)
    signal.set_wakeup_fd(told.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.stop())

    def drain() -> None:
        heard.recv(64)

    loop.register(heard.fileno(), drain)
    return told, heard


def main(words: Sequence[str]) -> int:
    supervisor.die_with_parent()
    given = run_options().parse_args(words)
    loop = Loop()
    hook = Hook(loop, vars(given))
    try:
        launched = launched_by_runtime(os.environ)
        config = configured(given)
        log.set_up(config.log_level, config.log_format)
        identity = Identity(config.plugin_index, config.plugin_name)
        if launched is None:
            hook.set_up(config)
    except (*FAULTS, UsageError) as error:
        logger.error("can't start", error=error)  # noqa: TRY400 - the message says all
        return supervisor.LEAVE
    return _run(loop, hook, *(launched or (identity, External(config.nri_socket))))


def refuse(reason: str) -> int:
    """For a plugin that the runtime launched and that can't work: says so as the runtime's configuration is refused
    or, where that would keep the runtime from starting, stands by.
    """
    launched = launched_by_runtime(os.environ)
    if launched is None:
        return supervisor.LEAVE
    loop = Loop()
    return _run(loop, Hook(loop, {}, reason), *launched)


def _run(loop: Loop, hook: Hook, identity: Identity, transport: External | Launched) -> int:
    plugin = Plugin(loop, identity, hook.handlers(), transport, on_stage=hook.staged)
    hook.unsolicited = plugin.update_containers
    wake_up = _stop_on_signals(loop)
    gc.freeze()
    gc.disable()  # collected in _refresh, between events
    loop.call_later(0, plugin.start)
    loop.run()
    plugin.close()
    hook.close()
    for one in wake_up:
        one.close()
    logger.info("left the runtime")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
