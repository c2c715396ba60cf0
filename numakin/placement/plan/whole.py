"""A whole partition to go to: on large machines a better one is often further away than a few members' moves, each of
which would have to pay.

It is looked for from who sits where, each member that moves at a price, by annealing in slices: one when it is asked,
so that no answer takes long. Which of its parts goes to which NUMA node is settled then, and who may as well stay, so
that most do. What was found is gone to in steps, which are judged by the whole.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from math import ceil

from numakin.placement.plan.chains import Ways
from numakin.placement.plan.rebalance import Board, Homes, Step
from numakin.placement.plan.search import COLDEST

EFFORT = 40
"""Steps of one annealing for each member and NUMA node."""

LEAST_STEPS, MOST_STEPS = 4_000, 320_000
"""Of one annealing."""

SLICE, SLICES = 40_000, 4
"""Steps at a time, about 0.1 s of one CPU, and how many slices there are at most in one window; what is settled after
the last one counts as one.
"""

HEATS = (1.0, 0.3)
"""Where annealings begin, one after another: warm ones, which keep most of what is there."""

STALLED = 6
"""Windows in which no member came nearer to what was found, after which it is looked for anew: others may move by now.
Where there was no step to it either, it is given up.
"""

VAIN, REST = 4, 6
"""Annealings in a row that found nothing, after which there is one only every so many windows: what is there is good,
until members or their traffic change.
"""


@dataclass
class WholeSearch:
    """To be asked once a window. homes: what is gone to, empty: nothing."""

    homes: Homes = field(default_factory=dict)
    _draft: Homes = field(default_factory=dict)
    _slice: int = 0
    _annealings: int = 0
    _away: int = 0
    _stalled: int = 0
    _offered: bool = False
    _vain: int = 0
    _window: int = 0

    @property
    def under_way(self) -> bool:
        """Whether a search goes on in the next window."""
        return self._slice > 0

    def steps(self, board: Board, budget: int, pays: float, declined: Container[Ways] = ()) -> tuple[Step, ...]:
        """At most `budget` members' towards what was found, as long as what is left of it pays; else a slice of the
        search.
        """
        self._note_progress(board)
        given_up = self._stalled >= STALLED and not self._offered
        if self.homes and (given_up or board.net(self.homes, pays) <= 0):
            self.homes = {}
        self._window += 1
        if self._vain < VAIN or self._slice or self._window % REST == 0:
            ends = self._annealings + len(HEATS)
            for _ in range(SLICES):
                if (self._stalled >= STALLED or not self.homes) and self._annealings < ends:
                    self._search(board, pays)
        steps: list[Step] = []
        while self.homes and budget > 0 and (step := board.step_towards(self.homes, budget, declined)) is not None:
            steps.append(step)
            budget -= len(step)
        self._offered = bool(steps)
        return tuple(steps)

    def _note_progress(self, board: Board) -> None:
        away = board.away(self.homes)
        self._stalled = 0 if away < self._away else self._stalled + 1
        self._away = away

    def _search(self, board: Board, pays: float) -> None:
        """A slice of an annealing, or what is to be settled once it has come to its end."""
        steps = min(MOST_STEPS, max(LEAST_STEPS, EFFORT * board.size))
        slices = ceil(steps / SLICE)
        seed = self._annealings * MOST_STEPS + self._slice
        if self._slice < slices:
            hottest = HEATS[self._annealings % len(HEATS)]
            cooling = (COLDEST / hottest) ** (1 / slices)
            heat = hottest * cooling**self._slice
            last = self._slice + 1 >= slices
            self._draft = board.annealed(
                self._draft, steps // slices, seed, (heat, COLDEST if last else heat * cooling), pays
            )
            self._slice += 1
            return
        found, self._draft, self._slice, self._annealings = self._draft, {}, 0, self._annealings + 1
        self._stalled, self._vain = 0, self._vain + 1
        # Who has less to gain than a move is worth stays, now that it is settled which part is where.
        found = board.annealed(board.aligned(found, pays), 1, seed, (COLDEST, COLDEST), pays)
        found = board.spared(found, pays)
        if found and board.net(found, pays) > max(0.0, board.net(self.homes, pays)):
            self.homes, self._away, self._vain = found, board.away(found), 0
