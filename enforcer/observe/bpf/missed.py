"""The array of missed.h, read."""

from enforcer.observe.bpf import syscall
from enforcer.observe.bpf.contract import MissedSlot
from enforcer.observe.bpf.counters import Missed
from enforcer.observe.bpf.loader import LoadedPrograms


class MissedArray:
    """What a program could not give to any key."""

    def __init__(self, loaded: LoadedPrograms) -> None:
        self._map = syscall.Map(loaded.maps["missed"], 4, 8, cpus=syscall.possible_cpus())

    def read(self) -> Missed:
        slots = [self._map.lookup(slot.to_bytes(4, "little")) for slot in MissedSlot]
        return Missed(*(sum(memoryview(slot).cast("Q")) for slot in slots))
