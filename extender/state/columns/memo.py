"""What was worked out of nodes' numbers, by what else it depends on, for as long as a node's numbers stay as they are.

One pod changes one node's numbers; the next pod like it finds all others as that one did.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

import numpy as np

from extender.state.columns.arrays import Bools, Floats, Positions

KEYS = 32
"""Questions of which the answers are kept: 1 MiB each with 20,000 nodes. Pods that come together are mostly alike."""

NEVER = -1
"""No revision."""


class _Answers:
    """values: rows x slots. revisions: by slot, what the values are of."""

    def __init__(self, rows: int, slots: int) -> None:
        self.values: Floats = np.zeros((rows, slots))
        self.revisions: Positions = np.full(slots, NEVER, dtype=np.intp)


class SlotMemo:
    """Under the cluster's lock. An answer is a few numbers, of each node as many."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, _Answers] = OrderedDict()

    def recall(self, key: Hashable, slots: Positions, revisions: Positions) -> tuple[Floats, Bools]:
        """A copy, rows x nodes, without a row where nothing is known; and of which of the nodes it is known: elsewhere
        it means nothing.
        """
        answers = self._answers.get(key)
        if answers is None:
            return np.zeros((0, len(slots))), np.zeros(len(slots), dtype=np.bool_)
        self._answers.move_to_end(key)
        within = np.minimum(slots, len(answers.revisions) - 1)
        known: Bools = (answers.revisions[within] == revisions) & (within == slots)
        return answers.values.take(within, axis=1), known

    def keep(self, key: Hashable, slots: Positions, revisions: Positions, values: Floats) -> None:
        """values: rows x nodes."""
        if not len(slots):
            return
        answers = self._sized(key, len(values), int(slots.max()) + 1)
        answers.values[:, slots], answers.revisions[slots] = values, revisions

    def _sized(self, key: Hashable, rows: int, slots: int) -> _Answers:
        """With room for so many; begun anew where there was not."""
        answers = self._answers.get(key)
        if answers is None or len(answers.revisions) < slots:
            answers = self._answers[key] = _Answers(rows, slots + slots // 4)
        if len(self._answers) > KEYS:
            self._answers.popitem(last=False)
        return answers
