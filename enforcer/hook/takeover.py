"""Takes over what runs at the runtime's Synchronize, and gives everything back when an operator releases the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from enforcer.hook.decision_records import as_told, names
from enforcer.hook.facts import pods
from enforcer.hook.ledger import Ledger
from enforcer.hook.ownership.adoption import Pinned, claim_on_stranger, exclusive_cpus_first, known_of, owner_of
from enforcer.hook.ownership.checkpoint import Past
from placement.decide.decide import Request
from process.log import Log
from proto import nri_pb2 as nri

log = Log("hook.agent")

LIVE = (nri.CONTAINER_CREATED, nri.CONTAINER_RUNNING, nri.CONTAINER_PAUSED)

Waiting = tuple[nri.PodSandbox, nri.Container, Request]
"""A running member that is still to be placed."""


class Takeover:
    """Works on the agent's ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def synchronize(
        self, sandboxes: Sequence[nri.PodSandbox], containers: Sequence[nri.Container]
    ) -> list[nri.ContainerUpdate]:
        """Takes what runs as it is; answers with updates for members that are not pinned yet."""
        ledger, by_id = self._ledger, {pod.id: pod for pod in sandboxes}
        ledger.sandboxes.listed(sandboxes)
        past = self._start_over({pod.uid for pod in sandboxes})
        ledger.refresh_memory()
        live = [
            (by_id[container.pod_sandbox_id], container)
            for container in containers
            if container.state in LIVE and container.pod_sandbox_id in by_id
        ]
        ledger.records.keep({container.id for _, container in live})
        known = known_of(live, past)
        waiting: list[Waiting] = [
            (pod, container, request)
            for pod, container in exclusive_cpus_first(live, known)
            if (request := self._adopted(pod, container, known)) is not None
        ]
        updates = self._leave_all_open(waiting) if ledger.released else self._place(waiting)
        ledger.sandboxes.note_cgroups()
        counts = {"pods": len(sandboxes), "containers": len(live), "waiting": len(waiting)}
        log.info("synchronized", **counts, known=len(known.grants), updates=len(updates))
        return updates

    def missed(self, pod: nri.PodSandbox, container: nri.Container) -> list[nri.ContainerUpdate]:
        """Takes over a container whose creation was under way at Synchronize: the runtime does not list it there, and
        asked nobody that we were. Its start is the first that we hear of it.
        """
        ledger = self._ledger
        ledger.refresh_memory()
        request = self._adopted(pod, container, known_of([(pod, container)], ledger.past))
        if request is None:
            return ledger.settle()
        if ledger.released:
            self._leave_open(pod, container)
            return []
        return self._place([(pod, container, request)])

    def release(self) -> list[nri.ContainerUpdate]:
        """Gives every pinned container the whole machine back, and pins no more: what comes before an uninstall.

        An empty set would mean "as it is" to the runtime, so the full one is named. They stay in the checkpoint until
        the runtime reports what became of it.
        """
        ledger, machine = self._ledger, self._ledger.machine
        ledger.released = True
        ledger.past = ledger.past.with_those_of(ledger.occupancy)
        pinned = [key for key, grant in ledger.past.grants.items() if not grant.externally_managed]
        ours = [allocation for key in pinned if (allocation := ledger.occupancy.allocations.get(key)) is not None]
        ledger.occupancy = ledger.occupancy.changed(
            reservations=dict.fromkeys(allocation.reservation for allocation in ours),
            allocations=dict.fromkeys(allocation.container for allocation in ours),
        )
        residents = ledger.residents.now()
        for allocation in ours:
            if allocation.container in residents:
                ledger.records.released(*as_told(residents[allocation.container]))
        log.warning("released: every container has the whole machine again", containers=len(pinned))
        return [*(pods.update(key, machine.all_cpus, machine.all_mems) for key in pinned), *ledger.settle()]

    def resume(self) -> None:
        """Pins again what starts from now on; what runs, at the next Synchronize."""
        self._ledger.released = False
        log.warning("resumed: containers are pinned again")

    def remember(self, past: Past) -> None:
        """What an earlier process gave; used at the runtime's Synchronize."""
        self._ledger.past, self._ledger.released = past, past.released

    def _start_over(self, uids: set[str]) -> Past:
        """Forgets containers, and keeps the reservations of members that are still there; what was given so far."""
        ledger, before = self._ledger, self._ledger.occupancy
        ledger.residents.clear()
        ledger.requests.clear()
        ledger.demands.clear()
        kept = {
            key: reservation
            for key, reservation in before.reservations.items()
            if reservation.pod in uids and reservation.opted_in
        }
        ledger.occupancy = replace(before, reservations=kept, allocations={}, generation=before.generation + 1)
        past = ledger.past.with_those_of(before)
        ledger.past = past.listed()
        return past

    def _leave_all_open(self, waiting: Iterable[Waiting]) -> list[nri.ContainerUpdate]:
        for pod, container, _ in waiting:
            self._leave_open(pod, container)
        return self.release()

    def _leave_open(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        self._ledger.note_unmanaged(pod, container)
        self._ledger.records.released(pod, container)

    def _place(self, waiting: Iterable[Waiting]) -> list[nri.ContainerUpdate]:
        """Pins what runs unpinned, and sets the pools of all others anew."""
        ledger = self._ledger
        updates = ledger.settle()
        for pod, container, request in waiting:
            decision = ledger.commit(pod, container, request, "synchronize")
            updates += ledger.updates(decision.updates)
            if decision.cpus:
                updates.append(pods.update(container.id, decision.cpus, decision.mems or ledger.machine.all_mems))
        return pods.merged([*updates, *ledger.settle()])

    def _adopted(self, pod: nri.PodSandbox, container: nri.Container, known: Past) -> Request | None:
        """As `_adopt`; a container over which that raises is left alone, and costs no other one its place."""
        try:
            return self._adopt(pod, container, known)
        except Exception:
            log.exception("a running container could not be taken over", **names(pod, container))
            self._ledger.records.counts["failed"] += 1
            return None

    def _adopt(self, pod: nri.PodSandbox, container: nri.Container, known: Past) -> Request | None:
        """Takes a running container as it is; its request when it is a member that still has to be placed."""
        ledger = self._ledger
        ledger.sandboxes.appeared(pod, container.linux.cgroups_path)
        ledger.residents.met(pod, container)
        ledger.records.check(pod, container)
        request = ledger.request(pod, container, known.homes.get(pod.uid, ()))
        if request is None:
            claim = claim_on_stranger(ledger.machine, ledger.occupancy, container, known.exclusive)
            ledger.note_unmanaged(pod, container, claim)
            return None
        now = ledger.node.cpuset_now(container.linux.cgroups_path) or pods.runtime_cpuset(container)
        owner = owner_of(ledger.machine, ledger.occupancy, request, now, known)
        if isinstance(owner, Pinned) and ledger.released and container.id not in known.grants:
            owner = pods.Claim(*map(str, now))  # since the release nothing is our work, however much it looks like it
        if isinstance(owner, pods.Claim):
            ledger.yield_to(pod, container, owner)
            return None
        if owner is None:
            return request
        allocation = owner.allocation
        # Unchecked: a neighbour's exclusive CPUs may have come without the update that takes them from this one.
        reservation = request.reservation(owner.homes, cache_domain=owner.cache_domain)
        ledger.occupancy = ledger.occupancy.changed(
            reservations={reservation.key: reservation}, allocations={container.id: allocation}, checked=False
        )
        where = {"numa_nodes": owner.homes, "cpus": allocation.cpus, "mems": allocation.mems}
        log.info("container found pinned", **names(pod, container), **where)
        return None
