"""The array of missed.h, read."""

from enforcer.observe import bpf
from enforcer.observe.contract import MissedSlot
from enforcer.observe.counters import Missed
from enforcer.observe.loader import Loaded


class MissedArray:
    """What a program could not give to any key."""

    def __init__(self, loaded: Loaded) -> None:
        self._map = bpf.Map(loaded.maps["missed"], 4, 8, cpus=bpf.possible_cpus())

    def read(self) -> Missed:
        slots = [self._map.lookup(slot.to_bytes(4, "little")) for slot in MissedSlot]
        return Missed(*(sum(memoryview(slot).cast("Q")) for slot in slots))
