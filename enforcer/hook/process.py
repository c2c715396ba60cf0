"""The hook: the process that answers the container runtime. One thread, one blocking loop, standard library and
protobuf only, since every container of the node waits for it.

    python -m enforcer.hook [the options of `numakin-enforcer run`]
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ParamSpec, TypeVar

from enforcer.hook.agent import Agent
from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.hardware.changes import FAULTS
from enforcer.hook.wiring import READ_BACK_S, Wiring
from enforcer.nri.errors import UsageError
from enforcer.nri.events import Runtime
from enforcer.nri.handlers import Handlers, Updates
from enforcer.nri.identity import Identity
from enforcer.nri.plugin import Plugin
from enforcer.nri.session import Stage
from enforcer.nri.transport import External, Launched, launched_by_runtime
from enforcer.settings.config import PLUGIN_NAME, Config, ConfigError, merged
from enforcer.settings.options import configured, run_options
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import LOCAL_DISTANCE, Machine, NumaNode
from numakin.placement.optin import parsing
from numakin.process import log, supervisor
from numakin.process.loop import Loop
from numakin.process.memory import return_blocks
from numakin.process.signals import beating, stop_on_signals
from numakin.wire import nri_pb2 as nri

logger = log.Log("hook")

QUIET_S = 10.0
"""So long a container waits for its cpuset where the runtime takes updates with answers alone."""

GROUP_KEY = parsing.GROUP_KEY.encode()

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class Hook:
    """Wires the NRI plugin to the agent."""

    def __init__(self, loop: Loop, flags: Mapping[str, object], refusal: str = "") -> None:
        """refusal: why this plugin can't work, known before the runtime asks."""
        self._refusal = refusal
        self.launched = False
        self._flags = flags
        self.wiring = Wiring(loop)

    def handlers(self) -> Handlers:
        """What the NRI session calls; every answer is followed by what it changed, for the observer."""
        return Handlers(
            configure=self._configure,
            synchronize=self._then(self._synchronize),
            concerns=self._concerns,
            left_over=lambda updates: self.wiring.push_when_safe(updates),
            create_container=self._then(lambda pod, container: self.agent.create_container(pod, container)),
            update_container=self._then(lambda pod, container, new: self.agent.update_container(pod, container, new)),
            stop_container=self._then(lambda pod, container: self.agent.stop_container(pod, container)),
            post_create_container=self._then(lambda pod, made: self.agent.post_create_container(pod, made)),
            post_start_container=self._then(self._started),
            remove_container=self._then(lambda pod, container: self.agent.remove_container(pod, container)),
            run_pod_sandbox=self.wiring.appeared,
            update_pod_sandbox=self._then(lambda pod, _overhead, new: self.agent.update_pod_sandbox(pod, new)),
            stop_pod_sandbox=self._then(lambda pod: self.agent.stop_pod_sandbox(pod)),
            remove_pod_sandbox=self._then(lambda pod: self.agent.stop_pod_sandbox(pod)),
        )

    @property
    def agent(self) -> Agent:
        return self.wiring.agent

    def staged(self, stage: Stage) -> None:
        """Registered is: synchronized; configured will do for a plugin that containerd 1.7 launched."""
        self.wiring.registered(now=stage is Stage.SYNCHRONIZED or (self.launched and stage is Stage.CONFIGURED))

    def _configure(self, text: str, runtime: Runtime) -> None:
        """A runtime's drop-in file configures a hook that it launched; one that we dialled sends nothing."""
        logger.info("the runtime configures us", runtime=runtime.name, version=runtime.version, nri=runtime.nri_version)
        if not self.wiring.ready:
            try:
                self.wiring.set_up(self._with_drop_in(text))
            except FAULTS as error:
                # A refusal is seen in the runtime's log, unlike ours; but containerd 1.7 does not start at all then.
                if not runtime.version.removeprefix("v").startswith("1."):
                    raise
                self._stand_by(error)
                return
        # Runtimes report NRI's own version since 0.12, which brought memory policies.
        self.agent.memory_policies = bool(runtime.nri_version)
        self.wiring.at_any_time = runtime.takes_updates_any_time

    def _stand_by(self, error: Exception) -> None:
        """Answers every event with "no adjustment"."""
        logger.error("standing by: nothing is pinned until this is fixed", error=error)
        everything = NumaNode(0, CpuSet.of(range(os.cpu_count() or 1)), 0, {0: LOCAL_DISTANCE})
        self.wiring.agent = Agent(NodeFacts(Machine((everything,)), CpuSet(), lambda _path: None, dict), Nominations())
        self.agent.release()

    def _with_drop_in(self, text: str) -> Config:
        if self._refusal:
            raise ConfigError(self._refusal)
        config = merged(self._flags, os.environ, text, "the runtime's drop-in file")
        if config.run_dir != merged(self._flags, os.environ).run_dir:
            raise ConfigError(
                "the runtime's drop-in file: run-dir can't be set there: the lock is taken before it is read"
            )
        if config.mode != "nri":
            raise ConfigError("the runtime's drop-in file: mode can't be set there: a runtime that launches us has NRI")
        return config

    def _synchronize(self, sandboxes: Sequence[nri.PodSandbox], containers: Sequence[nri.Container]) -> Updates:
        """Written down first: a container that runs can't be given our mark, and none is held up by this answer."""
        updates = self.agent.synchronize(sandboxes, containers)
        self.agent.moves.all_told()
        self.wiring.record()
        return updates

    def _started(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        self.agent.start_container(pod, container)
        updates = self.agent.post_start_container(pod, container)
        self.wiring.push_when_safe(updates)
        if updates and not self.wiring.at_any_time:
            self.wiring.call_later(QUIET_S, self._synchronize_anew)

    def _synchronize_anew(self) -> None:
        """Where nothing was asked meanwhile: the answer to the runtime's Synchronize may have updates too."""
        if self.agent.moves.unsent:
            self.wiring.register_again("the cpuset of a container waits for an answer that may have it")

    def _concerns(self, request: bytes) -> bool:
        """Whether an undecoded request may be about a container that gets an adjustment, or its answer has to carry a
        release.
        """
        ledger = self.agent.ledger
        if concerns_members(request) or (ledger.released and self.agent.moves.unsent):
            return True
        return ledger.node.rules.everyone and bool(ledger.occupancy.exclusive)

    def _then(self, handler: Callable[Given, Answer]) -> Callable[Given, Answer]:
        """The handler; what it changed is published once the runtime has its answer."""

        def handle(*given: Given.args, **named: Given.kwargs) -> Answer:
            self.wiring.note_event()
            try:
                return handler(*given, **named)
            finally:
                self.wiring.send_unsent()
                self.wiring.publish_soon()

        return handle


def concerns_members(request: bytes) -> bool:
    """Whether an undecoded request may be about a pod that has opted in: protobuf has strings as they are."""
    return GROUP_KEY in request


def main(arguments: Sequence[str], *, read_back_s: float = READ_BACK_S) -> int:
    supervisor.die_with_parent()
    return_blocks()
    given = run_options().parse_args(arguments)
    loop = Loop()
    hook = Hook(loop, vars(given))
    try:
        launched = launched_by_runtime(os.environ)
        config = configured(given)
        log.set_up(config.log_level, config.log_format)
        identity = Identity(config.plugin_index, PLUGIN_NAME)
        if launched is None:
            hook.wiring.set_up(config)
    except (*FAULTS, UsageError) as error:
        logger.error("can't start", error=error)  # noqa: TRY400 - the message says all
        return supervisor.LEAVE
    return _run(loop, hook, *(launched or (identity, External(config.nri_socket))), read_back_s=read_back_s)


def refuse(reason: str) -> int:
    """For a plugin that the runtime launched and that can't work: says so as the runtime's configuration is refused
    or, where that would keep the runtime from starting, stands by.
    """
    launched = launched_by_runtime(os.environ)
    if launched is None:
        return supervisor.LEAVE
    loop = Loop()
    return _run(loop, Hook(loop, {}, reason), *launched)


def _run(
    loop: Loop,
    hook: Hook,
    identity: Identity,
    transport: External | Launched,
    *,
    read_back_s: float = READ_BACK_S,
) -> int:
    plugin = Plugin(loop, identity, hook.handlers(), transport, on_stage=hook.staged)
    hook.launched = not transport.reconnects
    hook.wiring.carry_out = plugin.update_containers
    hook.wiring.stats = plugin.stats
    hook.wiring.confirmed_s_ago = lambda: plugin.confirmed_s_ago
    hook.wiring.register_again = plugin.register_again
    signals = stop_on_signals(loop)
    gc.freeze()
    gc.disable()  # collected in Wiring, between events
    loop.call_later(0, plugin.start)
    hook.wiring.call_later(read_back_s, partial(hook.wiring.read_back, read_back_s))
    beating(loop)
    loop.run()
    plugin.close()
    hook.wiring.close()
    signals.close()
    logger.info("left the runtime")
    return 0
