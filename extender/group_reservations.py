"""The thread that plans where groups go whose pods wait for nodes: as more of them come, and while any waits."""

from __future__ import annotations

from collections.abc import Callable

from numakin.process.threads import Threads
from numakin.process.woken import WokenThread

SHARE = 0.1
"""The share of its time that the thread may spend on planning: requests of kube-scheduler come first."""

AGAIN_S = 1.0
"""Between two plans while pods wait and none comes: nodes change, and room is given back."""


def group_reservations(reserve: Callable[[], bool], threads: Threads) -> WokenThread:
    """reserve: plans, and returns whether any pod waits. To be woken when pods have come or gone."""
    return WokenThread("group reservations", lambda: AGAIN_S if reserve() else None, share=SHARE, threads=threads)
