"""The thread that plans where groups go whose pods wait for nodes: as more of them come, and while any waits."""

from __future__ import annotations

from collections.abc import Callable

from numakin.process.threads import Threads
from numakin.process.woken import WokenThread

SHARE = 0.1
"""The share of its time that the thread may spend on planning: requests of kube-scheduler come first."""


def group_reservations(reserve: Callable[[], float | None], threads: Threads) -> WokenThread:
    """reserve: plans, and returns after how many seconds the next plan is due; None: no pod waits. To be woken when
    pods have come or gone.
    """
    return WokenThread("group reservations", reserve, share=SHARE, threads=threads)
