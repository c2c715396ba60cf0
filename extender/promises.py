"""Room for pods that come in the place of evicted ones: how a step of bringing a group together stands, whether it may
be begun, and the room that is held for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from threading import Lock

from extender.ledger import BindingLedger
from extender.planning.regroup_steps import StepSeen
from extender.planning.regrouping import PlanBasis, RegroupStep
from extender.scoring.group_holds import PromisedRoom, in_place_of
from extender.scoring.node_table import NodeTable
from extender.scoring.predict import Wanted
from extender.state.pods import PodRow
from extender.state.regroup_record import EvictionStep
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.errors import PlacementError
from numakin.placement.optin.options import Regroup

REMADE = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
"""The kinds of workloads of which it is known that another pod is made in the place of an evicted one. Those of other
projects may make none, a DaemonSet makes it on the same node, and a Job begins its work anew.
"""


class Promises:
    """lock, nodes, ledger: the cluster's. live: whether a node reports; closed: those that take no new pods, or only
    who tolerates that; both under the lock.
    """

    def __init__(
        self,
        lock: Lock,
        nodes: NodeTable,
        ledger: BindingLedger,
        live: Callable[[str], bool],
        closed: Callable[[], Collection[str]],
    ) -> None:
        self._lock, self._nodes, self._ledger, self._live, self._closed = lock, nodes, ledger, live, closed

    @property
    def members(self) -> int:
        """Pods that have opted in."""
        with self._lock:
            return self._nodes.locations.count

    def seen(self, step: EvictionStep) -> StepSeen:
        """How the step stands."""
        with self._lock:
            there, bound = self._counts(step.workload, step.node)
            return StepSeen(not self._ledger.evicted(step.uid), there, bound)

    def step(self, planned: RegroupStep, by: str) -> EvictionStep:
        """As it is written down before it is begun."""
        to, workload = planned.to, planned.workload
        with self._lock:
            counts = self._counts(workload, to.node)
        return EvictionStep(planned.name, planned.uid, workload, to.node, to.numa_node, *counts, by)

    def stands(self, group: str, basis: PlanBasis) -> bool:
        """Whether members and open nodes are as a plan was made for."""
        with self._lock:
            named, rows = self._nodes.uids_of(group), self._ledger.rows
            if named and {*named} != basis.places.keys():
                return False
            places = {uid: row.node for uid in basis.places if (row := rows.get(uid)) is not None and not row.leaving}
            return PlanBasis.of(places, self._closed()) == basis

    def obstacle(self, group: str, uid: str, origin: str = "", *, consent: bool = True) -> str:
        """Why the pod is not evicted now; empty: it may be. origin: the node that it is planned to leave, if that
        matters. consent: whether its annotation has to allow it.
        """
        with self._lock:
            row = self._ledger.rows.get(uid)
            if row is None or row.leaving or (origin and row.node != origin):
                return "it is not there any more"
            want = self._wanted(row)
            if want is None or want.group != group:
                return "it does not name the group"
            regroup = want.opt_in.regroup
            if consent and regroup is Regroup.NEVER:
                return "its annotation regroup.numakin.io does not say evict"
            if row.owner is None or row.owner.kind not in REMADE:
                return f"no controller makes another one in its place ({', '.join(REMADE)})"
            if row.own_terms:
                return "it says by itself where it may go"
            if regroup is not Regroup.EVICT_ALONE and not self._ready_beside(row):
                return "no other pod of its workload is ready"
            return self._unrest(group, uid)

    def keep(self, group: str, step: EvictionStep) -> str:
        """Holds the room for who comes in the place of the step's pod, if it is free; why not, or empty: it is held.

        Held room is looked at again until the pod is evicted: by then its node may be closed, or a pod of a higher
        priority be there.
        """
        with self._lock:
            self._nodes.show("")
            promise = self._nodes.group_holds.promise_to(group)
            held = promise is not None and promise.gone == step.uid
            why = "" if held and self._ledger.evicted(step.uid) else self._promise(group, step)
            self._nodes.claim(self._ledger.evicted)
            return why

    def held_for(self, group: str) -> PromisedRoom | None:
        """What is held for who comes in another's place."""
        with self._lock:
            return self._nodes.group_holds.promise_to(group)

    def withdraw(self, group: str) -> None:
        """Nothing is held any more for a pod that comes in another's place."""
        with self._lock:
            self._nodes.withdraw(group)

    def _promise(self, group: str, step: EvictionStep) -> str:
        row = self._ledger.rows.get(step.uid) or self._alike(group, step.workload)
        if row is None or row.workload != step.workload:
            return "no pod of its workload is known"
        newcomer = replace(row, uid=in_place_of(step.uid), node="", leaving=False)
        want = self._wanted(newcomer)
        if want is None or want.group != group:
            return "it does not name the group"
        if why := self._no_room(want, step):
            return why
        promise = PromisedRoom(step.uid, step.workload, step.place, want.whole[0].reservation_demand, newcomer.uid)
        self._nodes.promise(group, promise, row.priority)
        return ""

    def _alike(self, group: str, workload: str) -> PodRow | None:
        """Another pod of the workload, where the step's own is gone."""
        uids = (*self._nodes.locations.of(workload), self._nodes.waiting.first_of(group, workload) or "")
        return next((row for uid in uids if (row := self._ledger.rows.get(uid)) is not None), None)

    def _no_room(self, want: Wanted, step: EvictionStep) -> str:
        """By what decide() would do there with a pod alike that comes now."""
        view = self._nodes.view(step.node)
        if view is None or not self._takes(step.node, want.pod):
            return f"node {step.node} takes no new pods now"
        view = view.without_held((want.group,))
        promise = self._nodes.group_holds.promise_to(want.group)
        left = self._nodes.left_on(view, int(promise is not None and promise.place.node == step.node))
        demand = want.whole[0].reservation_demand + want.pod.overhead
        if left.pods < 1:
            return f"node {step.node} takes no more pods"
        if left.cpu < demand.cpu_milli or left.memory < demand.memory:
            return f"node {step.node} has too little CPU or memory left to give"
        kin = self._nodes.kins((step.node,), want).planned(*step.place).of(step.node)
        prediction = self._ledger.predicted(view, want, kin)
        if prediction is None or not prediction.fits or prediction.numa_nodes != NumaSet.of((step.numa_node,)):
            return f"NUMA node {step.numa_node} of {step.node} has no room for it now"
        return ""

    def _takes(self, node: str, pod: PodRow) -> bool:
        nodes = self._nodes
        return node not in nodes.cordoned and self._live(node) and nodes.admission.admits(pod.terms, node)

    def _counts(self, workload: str, node: str) -> tuple[int, int]:
        return self._ledger.replicas(workload, node), self._ledger.replicas(workload)

    def _ready_beside(self, row: PodRow) -> bool:
        uids = self._nodes.locations.of(row.workload).keys() - {row.uid}
        others = (other for uid in uids if (other := self._ledger.rows.get(uid)) is not None)
        return any(other.ready and not other.leaving for other in others)

    def _unrest(self, group: str, uid: str) -> str:
        if self._nodes.waiting.changes.get(group):
            return "pods of its group wait for a node"
        uids = self._nodes.uids_of(group)
        if any(self._ledger.evicted(member) for member in uids):
            return "a pod of its group is being deleted"
        if any(not self._ledger.rows[member].ready for member in uids if member != uid):
            return "another pod of its group is not ready"
        return ""

    def _wanted(self, row: PodRow) -> Wanted | None:
        try:
            return self._nodes.wanted(row)
        except PlacementError:
            return None
