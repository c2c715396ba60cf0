"""A pod's containers may each have a limit as large as a quantity can be, which people take for none."""

from __future__ import annotations

import pytest

from enforcer.hook.outbox import Outbox
from numakin.placement.model.demand import LARGEST_QUANTITY
from tests.enforcer.hook.world import World, container, member

HUGE = 7 << 60
"""7Ei bytes: three of them are more than a message has room for."""


@pytest.mark.parametrize("scope", ["pod", "container"])
def test_the_observer_is_told_of_the_pod_all_the_same(world: World, scope: str) -> None:
    outbox, sandbox = Outbox(world.agent), member("huge", scope=scope)
    for name in ("app", "side", "third"):
        made = container(f"huge-{name}", memory=HUGE)
        made.name, made.pod_sandbox_id = name, sandbox.id
        world.create(sandbox, made)
    told = [each for message in outbox.changes() for each in message.report.reservations]
    assert max(each.demand.memory for each in told) == (LARGEST_QUANTITY if scope == "pod" else HUGE)
