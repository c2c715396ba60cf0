"""What is asked of nodes' numbers: all that the answer depends on beside them and the kin on the nodes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ContainerNeed:
    """What one container asks of a NUMA node. expected: millicores that it counts as where it uses more. memory: bytes,
    of which the first container's is the whole pod's. own: CPUs of its own; cores: whether they are whole cores; asked:
    millicores that it asks for them. lasts: whether as long as the pod.
    """

    cpu_milli: int
    expected: int
    memory: int
    own: int
    cores: bool
    asked: int
    lasts: bool


@dataclass(frozen=True, slots=True)
class Needs:
    """A pod's.

    containers: those whose decision settles the pod's place. rest: what each node is sent that the group will still
    ask for, in millicores. leaves: the pod's own millicores, where a group begins and it counts what can follow; else
    None.
    """

    containers: tuple[ContainerNeed, ...]
    rest: int
    leaves: int | None
