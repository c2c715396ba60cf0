"""Hook and observer of one node, with what passes between them."""

from __future__ import annotations

from dataclasses import replace

from enforcer.hook.outbox import Outbox
from enforcer.local.learned import kin_table
from enforcer.observer.kinship import WorkloadIndex, learned
from enforcer.observer.moves.candidates import MoveBudget, Rested, move_options, offer_of, steps_of
from enforcer.observer.moves.declined import Declined
from enforcer.observer.planning_thread import PlanningInput
from enforcer.report.mirror import Mirror
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine
from numakin.wire import convert
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.moving import HOLDS_S
from tests.enforcer.hook.world import World, container, member

BUDGET = MoveBudget(2, 2)


class Node:
    """A hook and an observer. talk: weights of pairs of pods, "ab" for a and b, as seen in each window."""

    def __init__(self, *talk: str, reserved: str = "", machine: Machine | None = None) -> None:
        self.world = World(machine)
        self.agent = self.world.agent
        self.agent.ledger.occupancy = replace(self.agent.occupancy, reserved=CpuSet.parse(reserved))
        self.budget = BUDGET
        self.talk = {(f"uid-{entry}", f"uid-{other}"): 1e4 for entry, other in talk}
        self._outbox, self.mirror = Outbox(self.agent), Mirror()
        start = local.Start(
            session="s", machine=convert.machine_to(self.agent.ledger.machine, self.agent.occupancy.reserved)
        )
        self.mirror.started(start)
        for message in self._outbox.whole():
            self._heard(message)
        self._rested, self._declined = Rested(), Declined(self.agent.ledger.machine)

    def run(self, name: str, home: str = "", cpus: float = 1, **annotations: str) -> list[nri.ContainerUpdate]:
        """A member of its own group, nominated to a NUMA node; the updates that its answer takes along, carried out."""
        if home:
            self.world.nominations.add(pb.Expect(pod=f"uid-{name}", numa_nodes=home))
        before = {key: allocation.cpus for key, allocation in self.agent.occupancy.allocations.items()}
        self.world.create(member(name, group=name, **annotations), container(name, cpus))
        now = self.agent.occupancy.allocations
        return [key for key, cpus in before.items() if key in now and now[key].cpus != cpus]

    def told(self) -> None:
        """The observer hears what is new."""
        for message in self._outbox.changes():
            self._heard(message)

    def window(self, count: int = 1) -> PlanningInput:
        """What the observer hands its planner at a window's end, the last of so many; and the kin table that the hook
        gets.
        """
        for _ in range(count):
            workload_index = WorkloadIndex().after(self.agent.residents.now().values())
            kin = learned(self.talk, {}, workload_index)
            self.agent.ledger.learned.weighed(kin_table(kin))
            occupancy, wishes = self.mirror.occupancy, move_options(self.agent.residents.now().values())
            movable = self._rested.movable(occupancy, wishes, kin)
        return PlanningInput(occupancy, [], {}, self.talk, movable)

    def offer(self, situation: PlanningInput) -> local.Moves:
        """What the planner's thread makes of it, whenever it comes to it."""
        now = self.mirror.occupancy
        situation, declined = situation.at(now), self._declined.now(now)
        offer = offer_of(steps_of(self.agent.ledger.machine, situation, self.budget, declined), situation)
        offer.holds_s = HOLDS_S
        return offer

    def make(self, offer: local.Moves) -> None:
        for step in offer.steps:
            self.world.apply(self.agent.moves.make(step, offer))

    def homes(self, *names: str) -> list[str]:
        return [str(self.agent.occupancy.reservations[f"uid-{name}"].numa_nodes) for name in names]

    @property
    def counts(self) -> tuple[int, int]:
        """Moves that were made, and those that were declined."""
        return self.agent.records.counts["moved"], self.agent.records.counts["move declined"]

    def _heard(self, message: local.FromHook) -> None:
        kind = message.WhichOneof("message")
        if kind == "report":
            self.mirror.reported(message.report)
        elif kind == "declined":
            self._declined.received(message.declined, self.mirror.occupancy)
