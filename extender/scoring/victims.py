"""Whose eviction frees a NUMA node for a pod.

kube-scheduler names as victims whatever makes its own filters pass, which counts a node's CPUs as one. Where that frees
no NUMA node, others of lower priority may: the preempt verb may return those instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.scoring.predict import Wanted
from extender.scoring.strict import admits
from extender.state.columns.candidates import Candidates
from extender.state.faults import Faults
from extender.state.node_view import NodeView
from extender.state.pods import PodRow
from numakin.placement.decide.decide import Kin
from numakin.placement.model.demand import Demand
from numakin.placement.model.errors import PlacementError
from numakin.placement.model.workload import NODE

COMES_BACK = frozenset({NODE, "DaemonSet"})
"""Owners whose pods come back to the same node at once."""

MOST_DECIDED = 400
"""Times that decide() is asked for one answer of the preempt verb, some 0.2 s; nodes that are left over then keep the
victims that kube-scheduler named only where those free a NUMA node.
"""

Rows = Mapping[str, PodRow]
"""By uid."""


@dataclass(frozen=True, slots=True)
class Terms:
    """timeout: seconds of silence after which nothing is known of a node. faults: where those over one node end."""

    timeout: float
    faults: Faults


@dataclass(slots=True)
class DecisionBudget:
    """How many more times decide() may be asked."""

    left: int = MOST_DECIDED

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


def victims(
    candidates: Candidates, want: Wanted, named: Mapping[str, Sequence[str]], rows: Rows, terms: Terms
) -> dict[str, tuple[str, ...]]:
    """By node the pods whose eviction lets the pod in: those that kube-scheduler named for it where that is enough or
    too little is known to say no, else others; nodes on which there are none are left out.
    """
    budget, answer = DecisionBudget(), {}
    for node, view in zip(candidates.names, candidates.fresh(terms.timeout), strict=True):
        chosen: tuple[str, ...] | None = tuple(named[node])
        kin = candidates.kins.of(node)
        if view is not None:
            with terms.faults.contained(node):
                if not admits(view, want, kin, named[node]):
                    chosen = Eviction(view, want, kin, tuple(named[node]), rows, budget).others()
        if chosen is not None:
            answer[node] = chosen
    return answer


@dataclass(frozen=True, slots=True)
class Eviction:
    """On one node. named: by kube-scheduler."""

    view: NodeView
    want: Wanted
    kin: Kin
    named: tuple[str, ...]
    rows: Rows
    budget: DecisionBudget

    def others(self) -> tuple[str, ...] | None:
        """Pods of lower priority than the pod's whose eviction lets it in, as few and as unimportant as one pass over
        each NUMA node finds. They free at least as much CPU and memory as the named ones, which kube-scheduler's own
        filters need. None where there are none.
        """
        reserved = (self.rows[uid] for uid in self.view.index.pods if uid in self.rows and uid not in self.view.ended)
        evictable = [row for row in reserved if self._evictable(row)]
        sets = [self._freeing(self._on(numa_node, evictable)) for numa_node in self.view.machine.cpu_nodes]
        return min((chosen for chosen in sets if chosen is not None), key=self._cost, default=None)

    def _freeing(self, candidates: Sequence[PodRow]) -> tuple[str, ...] | None:
        """The named ones and as many others as it takes, less those that it does not take."""
        chosen = list(self.named)
        for row in candidates:
            if row.uid not in chosen:
                chosen.append(row.uid)
                if self._enough(chosen):
                    return self._pruned(chosen)
        return None

    def _pruned(self, chosen: Sequence[str]) -> tuple[str, ...]:
        left, needed = list(chosen), self._freed(self.named)
        for uid in sorted(chosen, key=lambda uid: (self._priority(uid), uid), reverse=True):
            less = [remaining for remaining in left if remaining != uid]
            freed = self._freed(less)
            if uid in self.rows and freed[0] >= needed[0] and freed[1] >= needed[1] and self._enough(less):
                left = less
        return tuple(left)

    def _enough(self, chosen: Sequence[str]) -> bool:
        return self.budget.take() and admits(self.view, self.want, self.kin, chosen)

    def _evictable(self, row: PodRow) -> bool:
        stays = row.owner is not None and row.owner.kind in COMES_BACK
        return row.node == self.view.name and row.priority < self.want.pod.priority and not stays

    def _on(self, numa_node: int, rows: Sequence[PodRow]) -> list[PodRow]:
        """Those that are on the NUMA node alone, the least important first and of those alike the largest."""
        reservations, by_pod = self.view.occupancy.reservations, self.view.occupancy.directory.by_pod
        alone = [
            row
            for row in rows
            if all(reservations[key].numa_nodes.mask == 1 << numa_node for key in by_pod.get(row.uid, ()))
        ]
        return sorted(alone, key=lambda row: (row.priority, -self._freed((row.uid,))[0], row.uid))

    def _freed(self, uids: Sequence[str]) -> tuple[int, int]:
        """Millicores and bytes that these request, as kube-scheduler counts them."""
        demands = [demand for uid in uids if (demand := self._demand(uid)) is not None]
        return sum(demand.cpu_milli for demand in demands), sum(demand.memory for demand in demands)

    def _demand(self, uid: str) -> Demand | None:
        try:
            return self.rows[uid].demand + self.rows[uid].overhead if uid in self.rows else None
        except PlacementError:
            return None

    def _priority(self, uid: str) -> int:
        return self.rows[uid].priority if uid in self.rows else 0

    def _cost(self, chosen: Sequence[str]) -> tuple[int, int, int]:
        return max(map(self._priority, chosen), default=0), len(chosen), self._freed(chosen)[0]
