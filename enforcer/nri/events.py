"""NRI's events and the runtimes that know them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Event(IntEnum):
    """What a plugin can ask to be called for; event N is bit N-1 of a subscription."""

    RUN_POD_SANDBOX = 1
    STOP_POD_SANDBOX = 2
    REMOVE_POD_SANDBOX = 3
    CREATE_CONTAINER = 4
    POST_CREATE_CONTAINER = 5
    START_CONTAINER = 6
    POST_START_CONTAINER = 7
    UPDATE_CONTAINER = 8
    POST_UPDATE_CONTAINER = 9
    STOP_CONTAINER = 10
    REMOVE_CONTAINER = 11
    UPDATE_POD_SANDBOX = 12
    POST_UPDATE_POD_SANDBOX = 13
    VALIDATE_CONTAINER_ADJUSTMENT = 14


def mask_of(events: Iterable[Event]) -> int:
    """The subscription for these events."""
    mask = 0
    for event in events:
        mask |= 1 << (event - 1)
    return mask


# Up to NRI 0.9 a bit above REMOVE_CONTAINER gets the plugin refused.
KNOWN_TO_ALL = mask_of(event for event in Event if event <= Event.REMOVE_CONTAINER)
KNOWN_SINCE_0_10 = mask_of(Event)

# The first versions of NRI and of the runtimes that carry NRI 0.10. Runtimes report NRI's own version since 0.12 only.
NRI_0_10 = (0, 10, 0)
NRI_0_12_1 = (0, 12, 1)
RUNTIMES_WITH_NRI_0_10 = {"containerd": (2, 2, 0), "cri-o": (1, 34, 0)}

# "v2.2.0", "1.7.24~ds1", "2.1.9+unknown"; a release candidate ("2.2.0-rc.1") comes before its release.
VERSION = re.compile(r"v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?(-)?")


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the runtime is, by its Configure; an older one leaves the last three out."""

    name: str
    version: str
    nri_version: str = ""
    registration_timeout_s: float = 5.0
    request_timeout_s: float = 2.0

    @property
    def takes_updates_any_time(self) -> bool:
        """Whether UpdateContainers is safe at any moment: before NRI 0.12.1 the runtime holds a lock while it carries
        one out, and may wait for ever for a CRI call that waits for that lock (containerd#13733).
        """
        return at_least(self.nri_version, NRI_0_12_1)

    @property
    def valid_events(self) -> int:
        """The subscription that this runtime accepts at most; where in doubt, what every runtime accepts."""
        since = RUNTIMES_WITH_NRI_0_10.get(self.name.lower())
        newer = at_least(self.nri_version, NRI_0_10) or (since is not None and at_least(self.version, since))
        return KNOWN_SINCE_0_10 if newer else KNOWN_TO_ALL


def at_least(version: str, wanted: tuple[int, int, int]) -> bool:
    match = VERSION.match(version)
    if match is None:
        return False
    major, minor, patch, before = match.groups()
    parsed = (int(major), int(minor), int(patch or 0))
    return parsed >= wanted if before is None else parsed > wanted
