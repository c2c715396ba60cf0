"""What was worked out of nodes' numbers, by what else it depends on, for as long as a node's numbers stay as they are.

One pod changes one node's numbers; the next pod like it finds all others as that one did.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

import numpy as np

from extender.state.columns.arrays import Bools, Floats, Positions

NEVER = -1
"""No revision."""


class _Answers:
    """values: rows x slots. revisions: by slot, what the values are of."""

    def __init__(self, rows: int, slots: int) -> None:
        self.values: Floats = np.zeros((rows, slots))
        self.revisions: Positions = np.full(slots, NEVER, dtype=np.intp)


class SlotMemo:
    """Under its owner's lock. An answer is a few numbers, of each node as many. most: questions of which the answers
    are kept, some 1 MiB each with 20,000 nodes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: OrderedDict[Hashable, _Answers] = OrderedDict()

    def recall(self, key: Hashable, slots: Positions, revisions: Positions, rows: int) -> tuple[Floats, Bools]:
        """A copy, rows x nodes, and of which of the nodes it is known: elsewhere it means nothing."""
        answers = self._answers.get(key)
        if answers is None or len(answers.values) != rows:
            return np.zeros((rows, len(slots))), np.zeros(len(slots), dtype=np.bool_)
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
        if answers is None or len(answers.values) != rows or len(answers.revisions) < slots:
            answers = self._answers[key] = _Answers(rows, slots + slots // 4)
        if len(self._answers) > self._most:
            self._answers.popitem(last=False)
        return answers
