"""What an answer may wait for: what is expected of the pod's workload, and the watch to show the pod."""

from __future__ import annotations

from collections.abc import Callable

from extender.ledger import BindingLedger
from extender.scoring.predict import Wanted
from extender.state.pods import PodRow


class PodWait:
    """Not under the cluster's lock. longest_s: of one pod's wait, once for all verbs.

    asked: called with each pod that kube-scheduler asks about, and the longest that this may take.
    """

    def __init__(self, ledger: BindingLedger, clock: Callable[[], float], longest_s: float) -> None:
        self._ledger, self._clock, self._longest_s = ledger, clock, longest_s
        self._over_for: Wanted | None = None
        self.asked: Callable[[PodRow, float], None] = lambda _row, _longest_s: None

    def wait(self, want: Wanted) -> None:
        """Returns at once for a pod whose wait is over."""
        if self._over_for is want:
            return
        self._over_for, until = want, self._clock() + self._longest_s
        self.asked(want.pod, self._longest_s)
        self._ledger.wait_for(want, until - self._clock())
