"""The map `listening` of account.h: what user space says of ports."""

from collections.abc import Set as AbstractSet

from enforcer.observe.bpf import syscall
from enforcer.observe.bpf.loader import LoadedPrograms

UNHEARD_OF, LISTENED_ON = b"\0", b"\2"


class ListeningMap:
    """Writes the ports that are listened on; those that no longer are go back to being like any other."""

    def __init__(self, loaded: LoadedPrograms) -> None:
        self._map = syscall.Map(loaded.maps["listening"], 4, 1)
        self._written: AbstractSet[int] = frozenset()

    def write(self, ports: AbstractSet[int]) -> None:
        for value, changed in ((LISTENED_ON, ports - self._written), (UNHEARD_OF, self._written - ports)):
            for port in changed:
                self._map.update(port.to_bytes(4, "little"), value)
        self._written = frozenset(ports)
