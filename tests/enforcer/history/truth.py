"""A node in a test, and what is true of it: which containers the runtime lists and what their cgroups have
(`Restarting` carries out the answers as a runtime does), what each asked for, whose cpuset somebody else has set, and
what each was last said to have for itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Self

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import PodBudget
from numakin.placement.model.rules import Rules
from numakin.placement.optin.quotas import UNLIMITED, Quota
from numakin.placement.state import pools
from numakin.wire import nri_pb2 as nri
from tests.enforcer.hook.world import container, path_of, two_numa_nodes
from tests.enforcer.restarts import Restarting
from tests.machines import machine

MOST_PODS, MOST_CONTAINERS = 7, 10
"""At once: more than the machines hold."""

MACHINES = (
    two_numa_nodes(),
    machine("one NUMA node", ["0-7"], [16]),
    machine("NUMA nodes of two caches", ["0-7", "8-15"], [16, 16], caches=["0-3", "4-7", "8-11", "12-15"]),
    machine("four threads a core", ["0-7", "8-15"], [16, 16], threads=["0-3", "4-7", "8-11", "12-15"]),
    machine("four NUMA nodes", ["0-3", "4-7", "8-11", "12-15"], [8, 8, 8, 8]),
    machine("two sockets", ["0-3", "4-7", "8-11", "12-15"], [8, 8, 8, 8], sockets=["0-7", "8-15"]),
)

NAMESPACES = ("shop", "bank")

WISHES: Mapping[str, tuple[float, tuple[str, ...]]] = {
    "cpus": (0.55, ("exclusive", "exclusive", "exclusive-cores", "shared-stable")),
    "scope": (0.3, ("container",)),
    "policy": (0.2, ("restricted", "single-numa-node", "none")),
    "span": (0.2, ("cache",)),
    "memory": (0.3, ("bind", "prefer")),
    "move": (0.3, ("cpus-and-memory", "cpus-and-memory", "never")),
}
"""How often a pod that opts in has an annotation, and which values."""


@dataclass
class Living:
    """A container that the runtime lists. foreign: the cpuset that another owner gave it. uncertain: another owner's or
    ours, since nobody could write down what became of it, or one of its name was never created before. met: whether the
    enforcer ever had it. noted: whether that was written down. limit: another owner's cpuset within which it may be
    narrowed. unseen: it was resized while nobody knew what it had asked for before.
    """

    pod: nri.PodSandbox
    name: str
    foreign: CpuSet | None = None
    uncertain: bool = False
    met: bool = False
    noted: bool = False
    limit: CpuSet | None = None
    unseen: bool = False

    @property
    def opted_in(self) -> bool:
        return "group.numakin.io" in self.pod.annotations

    @property
    def ours(self) -> bool:
        """Whether it can only be ours."""
        return self.opted_in and not self.anothers

    @property
    def anothers(self) -> bool:
        """Whether another owner has set its cpuset, or may have."""
        return self.foreign is not None or self.uncertain or self.limit is not None

    def wish(self, key: str) -> str:
        return self.pod.annotations.get(f"{key}.numakin.io", "")


@dataclass
class Failed:
    """Containers that were answered and that the runtime does not list, by id with sandbox and name: those that failed,
    until they are removed, tried again, or their pod ends.
    """

    attempts: dict[str, tuple[nri.PodSandbox, str]] = field(default_factory=dict)

    def tried_again(self, uid: str, name: str) -> None:
        self._forget(key for key, (sandbox, other) in self.attempts.items() if (sandbox.uid, other) == (uid, name))

    def pod_ended(self, uid: str) -> None:
        self._forget(key for key, (sandbox, _) in self.attempts.items() if sandbox.uid == uid)

    def _forget(self, keys: Iterable[str]) -> None:
        for key in [*keys]:
            del self.attempts[key]


SHM = Path("/dev/shm")

VM = "kata"
"""The runtime handler of pods that run in virtual machines."""


class Truth:
    """Use as a context manager. draw: whence a step takes what it draws. whole: the machine when all of it is there.
    resized_by_events: uids of pods of whose resize the enforcer has the runtime's word, which beats the extender's;
    resized_by_word: it has the extender's alone, so that none has it until that says it again. not_listed: uids of pods
    of which a container's creation was under way when an enforcer came. homes: the NUMA nodes that members who share
    CPUs were last written down to be on. devices: by resource, how many the kubelet said to be free since the
    enforcer's start. now: seconds. quotas: as operators have set them last. had: the CPUs that each namespace's
    containers had for themselves when that was looked at last; given: by the latest ledger there was. offered: uids of
    the pods whose members were to be moved.
    """

    def __init__(self, seed: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="numakin.", dir="/dev/shm" if SHM.is_dir() else None)
        self.draw = Random(seed)
        draw, run_dir = self.draw, Path(self._folder.name) / "run"
        run_dir.mkdir()
        self.whole = on = draw.choice(MACHINES)
        self.limit = draw.choice((None, None, 3, 6))
        self.most = draw.randint(3, MOST_CONTAINERS)
        rules = Rules(
            everyone=draw.random() < 0.5,
            within_caches=draw.random() < 0.3,
            max_exclusive_cpus_per_namespace=self.limit,
        )
        reserved = self._some_reserved(on.cpus)
        self.node = Restarting(
            on,
            run_dir,
            rules=rules,
            reserved=reserved,
            within_others=draw.random() < 0.5,
            unified=draw.random() < 0.6,
            at_any_time=draw.random() < 0.6,
            limited=True,
        )
        self.count = 0
        self.quotas: dict[str, Quota] = {}
        self.had = dict.fromkeys(NAMESPACES, 0)
        self.given = dict.fromkeys(NAMESPACES, 0)
        self.pods: dict[str, nri.PodSandbox] = {}
        self.live: dict[str, Living] = {}
        self.failed = Failed()
        self.never_created: set[tuple[str, str]] = set()
        self.said: dict[str, CpuSet] = {}
        self.budgets: dict[str, PodBudget] = {}
        self.told: set[str] = set()
        self.resized_by_events: set[str] = set()
        self.resized_by_word: set[str] = set()
        self.stable: dict[str, CpuSet] = {}
        self.not_listed: set[str] = set()
        self.homes: dict[str, NumaSet] = {}
        self.devices: dict[str, int] = {}
        self.offered: set[str] = set()
        self.now = 0.0
        self.unwritten = self.full = self.released = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def of_one_pod(self, one: str, other: str) -> bool:
        return self.live[one].pod.uid == self.live[other].pod.uid

    def own_of(self, namespace: str, own: Mapping[str, CpuSet]) -> set[CpuSet]:
        """Those of the namespace's containers. own: the CPUs for itself, by container."""
        return {cpus for key, cpus in own.items() if self.live[key].pod.namespace == namespace}

    def may_ask_for(self, namespace: str, key: str) -> bool:
        """Whether operators let the namespace's pods."""
        keys = self.quotas.get(namespace, UNLIMITED).keys
        return keys is None or key in keys

    def _often(self, share: float) -> bool:
        return self.draw.random() < share

    def _some_reserved(self, cpus: CpuSet) -> CpuSet:
        return CpuSet.of((cpus.lowest,)) if self._often(0.4) else CpuSet()

    def _a_pod(self) -> nri.PodSandbox | None:
        return self.pods[self.draw.choice(sorted(self.pods))] if self.pods else None

    def _a_container(self) -> str:
        """One that the runtime lists, and the enforcer, where there is one, knows; "" where there is none."""
        listed = sorted(self.live.keys() - self.unheard())
        return self.draw.choice(listed) if listed else ""

    def _shares_instead(self, key: str) -> bool:
        """Whether it asks for CPUs of its own, and has none."""
        return "exclusive" in self.live[key].wish("cpus") and not self.node.agent.occupancy.allocations[key].exclusive

    def _is_second_best(self, key: str) -> bool:
        """Whether a member has less than it asked for, or is on more NUMA nodes than one, or is not narrowed yet."""
        occupancy, living = self.node.agent.occupancy, self.live[key]
        allocation = occupancy.allocations[key]
        if not living.ours:
            return living.uncertain or (living.limit is not None and allocation.externally_managed)
        return (
            self._shares_instead(key)
            or not allocation.placed
            or len(occupancy.reservations[allocation.reservation].numa_nodes) > 1
        )

    def _is_managed(self, key: str) -> bool:
        """Whether the enforcer takes another owner to set its cpuset."""
        known = self.node.agent.occupancy.allocations.get(key)
        return known is not None and known.externally_managed

    def starting(self) -> list[str]:
        return sorted(key for key in self.live if self.node.running[key][1].state == nri.CONTAINER_CREATED)

    def unheard(self) -> set[str]:
        """Containers that do not run yet, and whose creation was under way when the enforcer came, or is."""
        known = self.node.agent.occupancy.allocations if self.node.agent is not None else {}
        return self.node.creating | {key for key in self.starting() if key not in known}

    def _anothers(self) -> CpuSet:
        """The machine's second and last CPU, which no pool of several NUMA nodes is."""
        cpus = [*self.node.machine.cpus]
        return CpuSet.of((cpus[1], cpus[-1]))

    def wide(self) -> CpuSet:
        """All CPUs but the machine's last: another owner's that has more than a NUMA node."""
        cpus = [*self.node.machine.cpus]
        return CpuSet.of(cpus[:-1])

    def _stop(self, key: str, *, lost: bool = False) -> None:
        self._ended(key)
        self.node.stop(key, lost=lost, sandbox=False)

    def _ended(self, key: str) -> None:
        gone = self.live.pop(key)
        if key in self.node.creating:
            self.never_created.add((gone.pod.uid, gone.name))
        self.said.pop(key, None)

    def _remove(self, key: str) -> None:
        sandbox, name = self.failed.attempts.pop(key)
        gone = container(key)
        gone.name, gone.state = name, nri.CONTAINER_STOPPED
        if self.node.heard is not None:
            self.node.heard.remove_container(sandbox, gone)

    def _take_what_waits(self) -> None:
        """What an answer without updates left over goes with the next one that may have them."""
        if self.node.heard is not None:
            self.node.apply(self.node.heard.moves.with_stop([]))

    def _answered(self, *, written: bool = True) -> None:
        """Notes what each container is said to have for itself."""
        if not self.node.attached:
            self.unwritten |= self.node.agent is not None
            self.stable.clear()
            if self.node.agent is not None:
                self.homes.clear()
            return
        if written:
            self.node.recorder.write()
        self.unwritten = not written
        held = self.node.agent.occupancy.allocations
        for key, living in self.live.items():
            living.met |= key in held
            living.noted |= written and living.met
        there = self.live.keys() - self.node.behind  # who was never given it has nothing to keep
        stable = {key: held[key].cpus for key in there if key in held and held[key].stable}
        self.stable = stable | {key: cpus for key, cpus in self.stable.items() if key in stable}
        reservations = self.node.agent.occupancy.reservations
        halfway = {self.live[key].pod.uid for key in self.live.keys() & self.node.behind}
        shares = (key for key in self.live if key in held and held[key].placed and not held[key].exclusive)
        homes = {key: reservations[held[key].reservation].numa_nodes for key in shares if written}
        self.homes = {
            key: home
            for key, home in homes.items()
            if len(home) == 1 and not held[key].stable and self.live[key].pod.uid not in halfway
        }
        self.said = {key: held[key].exclusive for key in self.live if key in held and held[key].exclusive}

    def _synchronize(self, *, lost: bool = False) -> list[nri.ContainerUpdate]:
        """Nobody else's container is touched, and what failed is not known any more. Who was left to another owner by an
        update that was lost is given all of that owner's CPUs, or has what it had: nothing may tell that from the other
        owner's later word. Who has none of its CPUs any more has no home either, nor who is bound to memory that has
        gone.
        """
        everything = self.node.machine.all_cpus
        gone = {key for key in self.homes if key in self.live and self.node.set_to(key)}
        gone = {key for key in gone if self.node.set_to(key).isdisjoint(everything)}
        there = self.node.machine.all_mems
        gone |= {key for key in self.homes if key in self.live and not self.node.cgroups[path_of(key)][1] <= there}
        self.homes = {key: home for key, home in self.homes.items() if key not in gone}
        for key in self.live.keys() & self.node.behind:
            self.live[key].uncertain |= self.live[key].limit is not None and self._is_managed(key)
        limits = {key: living.limit for key, living in self.live.items() if living.limit is not None}
        before = {key: self.node.set_to(key) for key in limits}
        updates = self.node.synchronize(lost=lost)
        told = {update.container_id: CpuSet.parse(update.linux.resources.cpu.cpus) for update in updates}
        widened = {
            key for key, limit in limits.items() if told.get(key) == limit & everything and self._is_managed(key)
        }
        told_again = {key for key in widened if lost or told[key] == before[key]}  # maybe once more CPUs are there
        self.resized_by_events.clear()
        for key in self.live.keys() - self.node.creating - told_again:
            self._shows(key)
        for key in self.node.creating:
            self.live[key].met = self.live[key].noted = False
            self.not_listed.add(self.live[key].pod.uid)
        for key, home in self.homes.items():
            self._is_at_home(key, home)
        set_anew = {key for key, cpus in told.items() if cpus} & self.live.keys() - widened
        touched = [key for key in set_anew if self.live[key].foreign is not None]
        assert not touched, f"{touched} are another owner's"
        self.failed.attempts.clear()
        self._answered()
        return updates

    def _shows(self, key: str) -> None:
        """What the enforcer, which has just met the container, takes it for."""
        living, known = self.live[key], self.node.agent.occupancy.allocations.get(key)
        managed = known is not None and known.externally_managed
        if living.limit is not None and not living.met and self._looks_ours(living.limit):
            living.foreign, living.limit = living.limit, None
        may_be_ours = living.opted_in or self.node.rules.everyone
        if living.foreign is not None and not living.met and may_be_ours and self._looks_ours(living.foreign):
            living.uncertain = True
            if self.released:
                return  # nothing is taken for ours or for another owner's
        if not living.met and not living.opted_in and self.node.rules.everyone:
            living.uncertain = living.foreign is not None  # a cpuset may look like one that we keep it to
        may_be_either = living.opted_in and living.uncertain and self._looks_ours(self.node.set_to(key))
        if living.limit is not None:
            left = living.uncertain and managed
            living.foreign, living.limit = (self.node.set_to(key), None) if left else (None, living.limit)
            living.uncertain = False
        elif self.released and may_be_either and not managed:
            return  # by whose word it has all that is online is seen once there is more
        elif living.uncertain or (living.foreign is None and not living.met and managed):
            living.foreign, living.uncertain = self.node.set_to(key) if managed else None, False

    def _looks_ours(self, cpus: CpuSet) -> bool:
        """Whether what is there of another owner's cpuset is a pool, or all CPUs, while some are offline."""
        node, occupancy = self.node.machine, self.node.agent.occupancy
        there = cpus & node.all_cpus
        pool = pools.shared(node, occupancy, node.nodes_of(there))
        domains = (pool & CpuSet(mask) for masks in node.cache_domains.values() for mask in masks)
        return node is not self.whole and (not there or node.cpus <= there or there in (pool, *domains))

    def _is_at_home(self, key: str, home: NumaSet) -> None:
        """A member that was on one NUMA node is there still, where that has CPUs for it."""
        living, node, occupancy = self.live.get(key), self.node.machine, self.node.agent.occupancy
        if living is None or not living.ours or self.released or not home <= node.cpu_nodes:
            return
        of_pod = {other for other, it in self.live.items() if it.pod.uid == living.pod.uid}
        if key not in occupancy.allocations or not of_pod <= self.homes.keys():
            return  # one of its pod's that was not there, or had no home, may take it along
        reservation = occupancy.reservations[occupancy.allocations[key].reservation]
        if pools.shared(node, occupancy, home):
            assert reservation.numa_nodes == home, f"{key} was on NUMA node {home}, and is on {reservation.numa_nodes}"
