"""What arrives at the hook's own socket: the observer's messages, and what people ask."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Protocol

from enforcer.hook.release import Release, ReleasingHost
from enforcer.local.control import LocalConnection
from enforcer.nri.calls import UpdateAnswer
from enforcer.nri.handlers import Updates
from numakin.placement.state.occupancy import Occupancy
from numakin.process import log
from numakin.wire import convert
from numakin.wire import local_pb2 as local

logger = log.Log("hook")


class Host(ReleasingHost, Protocol):
    """What the process offers."""

    def publish_soon(self) -> None: ...
    def send_unsent(self) -> None: ...
    def status(self) -> dict[str, object]: ...
    def start_observer(self, connection: LocalConnection) -> None: ...


class LocalRequests:
    """Hands each message to the agent, or answers it."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._health: tuple[float, local.Health] | None = None

    def received(self, connection: LocalConnection, message: local.ToHook) -> None:
        host, kind = self._host, message.WhichOneof("message")
        ledger = host.agent.ledger
        if kind == "who":
            self._answer_role(connection, message.who.role)
        elif kind == "expect":
            host.agent.expect(message.expect)
            host.send_unsent()
            host.publish_soon()
        elif kind == "gone":
            host.agent.deleted(message.gone.pods)
            host.publish_soon()
        elif kind == "kin":
            ledger.learned.weighed(message.kin)
        elif kind == "plan":
            ledger.learned.planned(message.plan)
        elif kind == "devices":
            ledger.take_devices(message.devices)
            host.publish_soon()
        elif kind == "moves":
            self._move(message.moves)
        elif kind == "namespaces":
            host.agent.limited(convert.namespaces_from(message.namespaces).quotas)
            host.publish_soon()
        elif kind == "uses":
            host.agent.used(message.uses.milli)
            host.publish_soon()
        elif kind == "health":
            self._health = time.monotonic(), message.health
        elif kind == "untold":
            containers = message.untold.containers
            host.register_again(f"{len(containers)} containers run that the runtime never reported")

    @property
    def observer(self) -> dict[str, object]:
        """seconds_ago: since the observer's last sign of life, None: there was none. The others are its own words."""
        if self._health is None:
            return {"seconds_ago": None, "degraded": "", "doing": ""}
        at, health = self._health
        return {"seconds_ago": time.monotonic() - at, "degraded": health.degraded, "doing": health.doing}

    def _answer_role(self, connection: LocalConnection, role: str) -> None:
        if role == "release":
            self._release(connection)
        elif role == "resume":
            self._resume(connection)
        elif role == "observer":
            self._host.start_observer(connection)
        else:
            _answer(connection, self._host.status())

    def _move(self, offer: local.Moves) -> None:
        """At once where that is safe, else with an answer that may carry moves."""
        host = self._host
        for proof in offer.proofs:
            host.agent.moves.proven(proof)
        if offer.plan:
            host.agent.moves.plan(offer)
            host.publish_soon()
            return
        if not host.at_any_time:
            host.agent.moves.later(offer)
            return
        for step in offer.steps:
            before = host.agent.occupancy
            updates = host.agent.moves.make(step, offer)
            host.push(updates, partial(self._moved, step, updates, before))
        host.publish_soon()

    def _moved(self, step: local.Moves.Step, updates: Updates, before: Occupancy, answer: UpdateAnswer) -> None:
        agent, failed = self._host.agent, [update.container_id for update in answer.failed]
        if answer.error:
            failed = agent.read_back.not_carried_out(updates)
        if failed:
            logger.warning("the runtime did not move containers", error=answer.error)
            self._host.push(agent.moves.take_back(step, failed, before), log_failure)
        self._host.publish_soon()

    def _release(self, connection: LocalConnection) -> None:
        """Answered once it is carried out, or its time is over."""
        Release(self._host, partial(_answer, connection)).start()
        self._host.publish_soon()

    def _resume(self, connection: LocalConnection) -> None:
        """What runs is pinned at the Synchronize that follows."""
        self._host.agent.resume()
        self._host.record()
        _answer(connection, {"resumed": True})
        self._host.register_again("resumed by an operator")


def _answer(connection: LocalConnection, answer: dict[str, object]) -> None:
    connection.send(local.FromHook(status=local.Status(json=json.dumps(answer))))


def log_failure(answer: UpdateAnswer) -> None:
    """For updates that none of the runtime's events asked for."""
    if answer.error or answer.failed:
        failed = " ".join(update.container_id for update in answer.failed)
        logger.warning("the runtime did not update containers", error=answer.error, failed=failed)
