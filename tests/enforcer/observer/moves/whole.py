"""A node whose observer offers and whose hook makes moves by an operator's options, as the two processes do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from enforcer.hook.agent import Agent
from enforcer.hook.local_requests import LocalRequests
from enforcer.nri.calls import OnAnswer, UpdateAnswer
from enforcer.nri.handlers import Updates
from enforcer.observer.moves.candidates import REST
from enforcer.observer.moves.rounds import MoveRounds
from enforcer.observer.planning_thread import PlanningInput
from enforcer.settings.config import Config
from numakin.wire import local_pb2 as local
from tests.enforcer.hook.world import World
from tests.enforcer.observer.hook_and_observer import Node


class Runtime:
    """The hook's host. at_any_time: whether its runtime takes updates at any time."""

    attached = True
    register_again: Callable[[str], None] = staticmethod(lambda _reason: None)

    def __init__(self, world: World, *, at_any_time: bool) -> None:
        self._world, self.at_any_time = world, at_any_time

    @property
    def agent(self) -> Agent:
        return self._world.agent

    def push(self, updates: Updates, on_answer: OnAnswer) -> None:
        self._world.apply(updates)
        on_answer(UpdateAnswer())

    def call_later(self, _delay_s: float, callback: Callable[[], None]) -> None: ...
    def publish_soon(self) -> None: ...
    def send_unsent(self) -> None: ...
    def record(self) -> None: ...
    def start_observer(self, _connection: Any) -> None: ...
    def status(self) -> dict[str, object]:
        return {}


class WholeNode(Node):
    """Members rest, are offered moves and are moved, window by window. memory: what each has, by its key. at_any_time:
    whether moves are made at once; else they wait for a container that stops.
    """

    def __init__(self, *talk: str, config: Config = Config(), at_any_time: bool = True, **more: Any) -> None:  # noqa: B008
        super().__init__(*talk, **more)
        self.memory: dict[str, dict[int, int]] = {}
        self.rounds = MoveRounds(
            config, self.agent.ledger.machine, memory=lambda _occupancy, key: self.memory.get(key, {})
        )
        self._requests = LocalRequests(Runtime(self.world, at_any_time=at_any_time))

    def talks(self, *pairs: str) -> None:
        """From now on these pairs do, and no others."""
        self.talk = {(f"uid-{first}", f"uid-{other}"): 1e4 for first, other in pairs}

    def offer(self, situation: PlanningInput) -> local.Moves:
        return self.rounds.offer(situation.at(self.mirror.occupancy))

    def windows(self, count: int) -> list[list[str]]:
        """Who was offered a move in each."""
        offered = []
        for _ in range(count):
            offer = self.offer(self.window())
            self._requests.received(None, local.ToHook(moves=offer))
            self.told()
            offered.append(sorted(way.reservation.removeprefix("uid-") for step in offer.steps for way in step.ways))
        return offered

    def stop_another(self) -> None:
        """What waits is carried out, which the observer is not told yet."""
        self.world.apply(self.agent.moves.with_stop([]))

    def rest(self) -> None:
        """Until those who have just come may be moved."""
        self.told()
        assert not any(self.windows(REST))

    def _heard(self, message: local.FromHook) -> None:
        super()._heard(message)
        if message.WhichOneof("message") == "declined":
            self.rounds.declined(message.declined, self.mirror.occupancy)
