"""What the containers' cgroups really have, beside what the hook believes: read in turn, a few between two events.

A runtime that carries out the updates of an answer says nothing of those that failed, and a kernel may refuse one: a
cgroup v1 can't be narrowed to less than one below it has, as systemd or docker make them in a container. And another
owner may have written the cgroup since. So a cpuset that differs at two readings in a row is asked for once more; what
differs then is told, and the exclusive CPUs that such a container runs on are not called exclusive.

What a memory policy has become is looked at once, after the container's start: an OCI runtime that does not know it
leaves it out without a word.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from enforcer.hook.facts import pods
from enforcer.hook.ledger import Ledger
from enforcer.machine.cgroup import CpusAndMems
from numakin.placement.decide.decide import MemoryPolicy, Reason
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.process.log import Log
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri

log = Log("hook.read_back")

AT_ONCE = 16
"""Cgroups that are read between two events: some 100 microseconds each."""

DIFFERS, EXCLUSIVE, NOT_APPLIED = "differs", "exclusive CPUs", "memory policy"
"""What these reasons are about; the second one takes the place of the decision's own."""

CAUSES = "the kernel refuses it, as where a cgroup below has more, or another owner has written it since"

DEFAULT = "default"
"""The policy of a process that has none, in /proc/PID/numa_maps."""

ASKED_AFTER = 2
"""Readings with the same difference: an answer that is under way is carried out between two of them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """given: by the ledger. found: in the cgroup, at so many readings in a row."""

    given: CpusAndMems
    found: CpusAndMems
    readings: int

    @property
    def lasts(self) -> bool:
        """Whether it is there still though it was asked for once more."""
        return self.readings > ASKED_AFTER


class ReadBack:
    """`differences`: by container, as of their latest readings."""

    def __init__(self, ledger: Ledger, waits: Callable[[str], bool]) -> None:
        """waits: whether the runtime has not been asked for a container's cpuset yet."""
        self._ledger, self._waits = ledger, waits
        self._left: deque[str] = deque()
        self._again: list[str] = []
        self._asked: dict[str, MemoryPolicy] = {}
        self._started: dict[str, int] = {}
        self._shared: dict[str, str] = {}
        self.differences: dict[str, Difference] = {}

    def begin(self) -> None:
        """A new round, over all that runs by our hand now."""
        ledger = self._ledger
        self._left = deque(() if ledger.released else filter(self._is_ours, ledger.occupancy.allocations))
        self.differences = {key: self.differences[key] for key in self._left if key in self.differences}

    def step(self) -> list[nri.ContainerUpdate]:
        """Reads some cgroups of the round; updates for those that are asked for once more. A fault over one of them
        costs the others nothing: the next step goes on with the one after it.
        """
        residents = self._ledger.residents.now()
        for _ in range(min(AT_ONCE, len(self._left))):
            key = self._left.popleft()
            if key in residents and self._compare(residents[key]):
                self._again.append(key)
        if not self._left:
            self._note_shared(residents)
        self._look_at_policies(residents)
        again, self._again = self._again, []
        return [pods.update(key, *self.differences[key].given) for key in again if key in self.differences]

    @property
    def under_way(self) -> bool:
        """Whether the round is not at its end."""
        return bool(self._left or self._again)

    def _compare(self, resident: local.LocalContainer) -> bool:
        """Whether the container is to be asked for once more."""
        key, ledger = resident.id, self._ledger
        held, found = ledger.occupancy.allocations.get(key), ledger.node.cpuset_now(resident.cgroups_path)
        if held is None or found is None or not self._is_ours(key):
            self._forget(resident)
            return False
        mems = held.mems or ledger.mems_due(key, resident.cgroups_path, found[1])
        if _as_given(held.cpus, mems, found):
            self._forget(resident)
            return False
        given, before = (held.cpus, mems), self.differences.get(key)
        same = before is not None and (before.given, before.found) == (given, found)
        if self._waits(key):
            if not same:
                self._forget(resident)
            return False
        now = Difference(given, found, before.readings + 1 if before is not None and same else 1)
        self.differences[key] = now
        if now.readings == ASKED_AFTER + 1:
            self._tell(resident, now)
        return now.readings == ASKED_AFTER

    def _forget(self, resident: local.LocalContainer) -> None:
        """Nothing differs of what the runtime was asked for."""
        was = self.differences.pop(resident.id, None)
        if was is not None and was.lasts:
            self._ledger.records.amend(resident, DIFFERS, None, self._home(resident.id))

    def _is_ours(self, container: str) -> bool:
        """Whether we have set its CPUs: of what has not opted in, by the operator's rule alone."""
        occupancy = self._ledger.occupancy
        held = occupancy.allocations[container]
        unmanaged = held.externally_managed or (held.reservation == container and not occupancy.rules.everyone)
        return bool(held.cpus or held.mems) and not unmanaged

    def _tell(self, resident: local.LocalContainer, now: Difference) -> None:
        """Once for each."""
        found = f"CPUs {now.found[0] or 'all'}, memory {now.found[1] or 'all'}"
        given = f"CPUs {now.given[0] or 'as they are'}, memory {now.given[1] or 'as it is'}"
        effect = f"its cgroup has {found}, and not {given}, which were asked for twice: {CAUSES}"
        self._ledger.records.counts["differs"] += 1
        self._ledger.records.amend(resident, DIFFERS, Reason(DIFFERS, "", effect), self._home(resident.id))

    def _note_shared(self, residents: Mapping[str, local.LocalContainer]) -> None:
        """Tells whose exclusive CPUs are not theirs alone, because of whom, and whose are again."""
        ledger = self._ledger
        everything = ledger.machine.all_cpus
        stray = {key: each.found[0] or everything for key, each in self.differences.items() if each.lasts}
        shared: dict[str, str] = {}
        for key, held in ledger.occupancy.allocations.items() if stray or self._shared else ():
            others = [other for other, cpus in stray.items() if other != key and not cpus.isdisjoint(held.exclusive)]
            if key not in residents or not (others or key in self._shared):
                continue
            shared[key] = ", ".join(_name(residents[other]) for other in sorted(others) if other in residents)
            if shared[key] != self._shared.get(key, ""):
                effect = f"CPUs {held.exclusive} are NOT its own alone: {shared[key]} could not be moved off them"
                alone = f"CPUs {held.exclusive} are shared with nobody"
                why = Reason(EXCLUSIVE, str(len(held.exclusive)), effect if shared[key] else alone)
                ledger.records.amend(residents[key], EXCLUSIVE, why, self._home(key))
        self._shared = {key: names for key, names in shared.items() if names}

    def _home(self, container: str) -> NumaSet:
        held = self._ledger.occupancy.allocations.get(container)
        reservation = self._ledger.occupancy.reservations.get(held.reservation) if held is not None else None
        return reservation.numa_nodes if reservation is not None else NumaSet()

    def not_carried_out(self, updates: Iterable[nri.ContainerUpdate]) -> list[str]:
        """The containers whose cgroup does not have what these updates ask for, or can't be read: a runtime that
        reports a failure may not say of which.
        """
        residents, missing = self._ledger.residents.now(), []
        for update in updates:
            resident, cpu = residents.get(update.container_id), update.linux.resources.cpu
            found = self._ledger.node.cpuset_now(resident.cgroups_path) if resident is not None else None
            if found is None or not _as_given(CpuSet.parse(cpu.cpus), NumaSet.parse(cpu.mems), found):
                missing.append(update.container_id)
        return missing

    # Memory policies

    def asked(self, container: str, policy: MemoryPolicy) -> None:
        """The container is created with it."""
        self._asked[container] = policy

    def started(self, container: nri.Container) -> None:
        """It has its own program by now."""
        if container.id in self._asked and container.pid:
            self._started[container.id] = container.pid

    def ended(self, container: str) -> None:
        self._asked.pop(container, None)
        self._started.pop(container, None)

    def _look_at_policies(self, residents: Mapping[str, local.LocalContainer]) -> None:
        started, self._started = self._started, {}
        for key, pid in started.items():
            policy = self._asked.pop(key)
            if key in residents and self._ledger.node.memory_policy(pid) == DEFAULT:
                effect = (
                    f"{policy.mode} {policy.numa_nodes} was asked for and is not in force: the OCI runtime does not"
                )
                why = Reason(NOT_APPLIED, "", f"{effect} know memory policies, or its program has set another one")
                self._ledger.records.counts["memory policy not applied"] += 1
                self._ledger.records.amend(residents[key], NOT_APPLIED, why, self._home(key))


def _as_given(cpus: CpuSet, mems: NumaSet, found: CpusAndMems) -> bool:
    """Where nothing was given, anything will do."""
    return cpus in (CpuSet(), found[0]) and mems in (NumaSet(), found[1])


def _name(resident: local.LocalContainer) -> str:
    return f"{resident.namespace}/{resident.pod_name} {resident.name}"
