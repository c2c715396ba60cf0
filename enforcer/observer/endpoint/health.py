"""What the port asks of the observer."""

from __future__ import annotations

from typing import Protocol

from enforcer.observer.census import Census
from enforcer.observer.cpu_use import CpuUse
from enforcer.observer.endpoint.attachment import Attachment
from enforcer.observer.endpoint.counters import Counters
from enforcer.observer.member_memory import MemberMemory
from enforcer.observer.traffic_loop import TrafficLoop
from enforcer.report.mirror import Mirror
from numakin.process.threads import Threads


class Health(Protocol):
    """Read by the port's threads."""

    mirror: Mirror
    counters: Counters
    watching: TrafficLoop | None
    threads: Threads
    attachment: Attachment
    census: Census | None
    memory: MemberMemory | None
    cpu_use: CpuUse | None

    @property
    def ready(self) -> tuple[bool, str]: ...
    @property
    def streaming(self) -> int: ...
    @property
    def skewed(self) -> int: ...
