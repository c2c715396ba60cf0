"""Over any history of containers, others' writes, a full run folder and kills, all that is ours is known and nothing else is touched."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from placement.model.cpuset import CpuSet
from placement.state.pools import shared
from tests.enforcer.hook.world import two_numa_nodes
from tests.enforcer.restarts import Restarting, container, ours, path_of, pod


class Histories(RuleBasedStateMachine):
    """Containers come and go, others write cpusets, the run folder is full or not, and the enforcer is killed and
    started at any point, also between an answer and the record of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="numakin.")
        self.count = 0
        self.externally_managed: dict[str, CpuSet] = {}
        self.given: set[str] = set()
        self.unrecorded: set[str] = set()

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize()
    def begin(self) -> None:
        run_dir = Path(self.folder.name) / "run"
        run_dir.mkdir()
        self.node, self.full = Restarting(two_numa_nodes(), run_dir), False

    @rule()
    def the_run_folder_fills_or_empties(self) -> None:
        (self.node.empty if self.full else self.node.fill)()
        self.full = not self.full

    @property
    def up(self) -> bool:
        return self.node.agent is not None

    def _settled(self, *, recorded: bool) -> None:
        """After an event: which containers have what we gave them, and whether that was written down in time."""
        if not self.up:
            return
        held = self.node.agent.occupancy.allocations
        self.given = {name for name in self.node.running if name in held and held[name].cpus and ours(self.node, name)}
        if recorded:
            self.node.recorder.write()
            self.unrecorded = set()
        else:
            self.node.kill()

    @rule(
        kind=st.sampled_from(["shared", "exclusive", "plain", "claimed"]),
        cpus=st.integers(1, 3),
        recorded=st.booleans(),
    )
    def create(self, kind: str, cpus: int, *, recorded: bool) -> None:
        if len(self.node.running) >= 8:
            return
        self.count += 1
        name = f"c{self.count}"
        wishes = {} if kind == "plain" else {"group": f"g{self.count % 2}"}
        if kind == "exclusive":
            wishes["cpus"] = "exclusive"
        made = container(name, cpus, "1,13" if kind == "claimed" else "", created_at=self.count)
        self.node.create(pod(name, **wishes), made)
        if kind == "claimed":
            self.externally_managed[name] = CpuSet.parse("1,13")
        if not recorded:
            self.unrecorded.add(name)
        self._settled(recorded=recorded)

    @precondition(lambda self: self.node.running)
    @rule(which=st.integers(0, 7), recorded=st.booleans(), lost=st.booleans())
    def stop(self, which: int, *, recorded: bool, lost: bool) -> None:
        name = sorted(self.node.running)[which % len(self.node.running)]
        if not self.up and name in self.unrecorded:
            return  # nobody could know then whose CPUs are missing from its neighbours' pool
        self.node.stop(name, lost=lost)
        self.externally_managed.pop(name, None)
        self.given.discard(name)
        if self.up and lost:
            self.node.recorder.write()
            if recorded:
                self.start()
            else:
                self.node.kill()
            return
        self._settled(recorded=recorded)

    @precondition(lambda self: self.given)
    @rule(which=st.integers(0, 7))
    def another_owner_writes(self, which: int) -> None:
        """CPUs of both NUMA nodes, as no pool has them; over the runtime where we are there."""
        name = sorted(self.given)[which % len(self.given)]
        taken = CpuSet.parse("2,14")
        if self.up:
            first, running = self.node.running[name]
            self.node.apply(
                self.node.agent.update_container(first, running, container(name, claim=str(taken)).linux.resources)
            )
        self.node.cgroups[path_of(name)] = taken, self.node.machine.mems
        self.externally_managed[name] = taken
        self.given.discard(name)
        self._settled(recorded=True)

    @precondition(lambda self: self.up)
    @rule()
    def kill(self) -> None:
        self.node.kill()

    @rule()
    def start(self) -> None:
        """Or, where it runs, the runtime's restart."""
        before = set(self.given)
        if self.up:
            self.node.synchronize()
        else:
            self.node.start()
        lost = {name for name in before if name in self.node.running and not ours(self.node, name)}
        assert not lost, f"disowned: {lost}"
        self._settled(recorded=True)

    @invariant()
    def exclusive_means_exclusive(self) -> None:
        if not self.up:
            return
        held = self.node.agent.occupancy.allocations
        for name in self.given:
            assert self.node.cpus(name) == held[name].cpus, name
            for other in self.given - {name}:
                assert held[name].exclusive.isdisjoint(self.node.cpus(other)), (name, other)

    @invariant()
    def each_pool_is_as_wide_as_it_can_be(self) -> None:
        if not self.up:
            return
        occupancy = self.node.agent.occupancy
        for name in self.given:
            allocation = occupancy.allocations[name]
            if not allocation.exclusive:
                homes = occupancy.reservations[allocation.reservation].numa_nodes
                assert allocation.cpus == shared(self.node.machine, occupancy, homes)

    @invariant()
    def other_owners_cpusets_are_left_alone(self) -> None:
        for name, cpus in self.externally_managed.items():
            assert self.node.cpus(name) == cpus
            if self.up and name in self.node.agent.occupancy.allocations:
                assert not ours(self.node, name)


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
