"""How NRI's versions differ on the wire, and a runtime that carries each."""

from dataclasses import dataclass

FIRST_EVENTS = 0x7FF
ALL_EVENTS = 0x3FFF

# Events as NRI numbers them, with the names of their own calls.
EVENTS = {
    "RunPodSandbox": 1,
    "StopPodSandbox": 2,
    "RemovePodSandbox": 3,
    "CreateContainer": 4,
    "PostCreateContainer": 5,
    "StartContainer": 6,
    "PostStartContainer": 7,
    "UpdateContainer": 8,
    "PostUpdateContainer": 9,
    "StopContainer": 10,
    "RemoveContainer": 11,
    "UpdatePodSandbox": 12,
}

# The events that have a call of their own in every version.
ALWAYS_OWN_CALL = frozenset({"CreateContainer", "UpdateContainer", "StopContainer", "UpdatePodSandbox"})


@dataclass(frozen=True, slots=True)
class Version:
    """One NRI version, and the containerd that a Runtime claims to be when it plays it.

    closes_unsynchronized: whether a plugin that fails Synchronize, or is late with it, sees its connection end.
    containerd 1.7 forgets it, leaves the socket open and even carries out its updates (measured); 2.1 closes.
    tells_stopped: whether a container that has ended by itself is told as STOPPED (containerd 2.3.4; not 1.7, 2.1).
    lets_go_while_updating: whether an UpdateContainers does not hang the runtime where it meets an event (`Locks`).
    """

    nri: str
    containerd: str
    valid_events: int = FIRST_EVENTS
    synchronizes_launched: bool = True
    closes_unsynchronized: bool = True
    splits_synchronize: bool = True
    sends_timeouts: bool = True
    sends_nri_version: bool = False
    lets_go_while_updating: bool = False
    tells_stopped: bool = False
    own_calls: frozenset[str] = ALWAYS_OWN_CALL


VERSIONS = {
    version.nri: version
    for version in (
        Version(
            "0.6.1",
            "1.7.24",
            synchronizes_launched=False,
            closes_unsynchronized=False,
            splits_synchronize=False,
            sends_timeouts=False,
        ),
        Version("0.8.0", "v2.1.9"),
        Version("0.10.0", "v2.2.0", ALL_EVENTS),
        Version(
            "0.12.0", "v2.3.0", ALL_EVENTS, sends_nri_version=True, tells_stopped=True, own_calls=frozenset(EVENTS)
        ),
        Version(
            "0.12.1",
            "v2.3.3",
            ALL_EVENTS,
            sends_nri_version=True,
            tells_stopped=True,
            lets_go_while_updating=True,
            own_calls=frozenset(EVENTS),
        ),
    )
}
