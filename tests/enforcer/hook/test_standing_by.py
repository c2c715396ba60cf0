"""A hook that can't work, and that a runtime has launched which would not start where it is refused."""

from __future__ import annotations

from enforcer.hook.process import Hook
from enforcer.nri.events import Runtime
from tests.enforcer.hook.timers import TimersAlone
from tests.enforcer.hook.world import container, member


def test_what_waits_to_be_said_of_containers_is_said_and_kept_no_longer() -> None:
    loop = TimersAlone()
    hook = Hook(loop, {}, refusal="the lock is another one's")
    handlers = hook.handlers()
    handlers.configure("", Runtime("containerd", "1.7.24"))
    for at in range(3):
        sandbox, made = member(f"m{at}", cpus="all-of-them"), container(f"m{at}")
        assert handlers.create_container(sandbox, made) == (None, [])
        handlers.stop_container(sandbox, made)
        handlers.stop_pod_sandbox(sandbox)
        loop.go_on(1)
        assert hook.agent.records.counts["bad annotation"] == at + 1
