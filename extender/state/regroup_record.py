"""What is written on a group's AffinityGroup object while it is brought together again: the step under way, so that
every replica of the extender holds the same room and none evicts twice, and what came of those before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec

from extender.state.columns.free_room import NumaPlace
from numakin.placement.model.cpuset import LARGEST_ID

KEY = "numakin.io/regroup"
"""The annotation."""

LONGEST = 4096
"""Characters that are read of it."""

LATELY_S = 3600 + 120
"""For so long, in seconds, what was asked for counts against the budget of an hour: it may be carried out a bit later.
"""

NumaId = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_ID)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""As they are read: whoever may write on a group's object may write any number there."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_WORKLOAD = re.compile(r"[^/]{1,253}/[^/]{1,253}/[^/]{1,253}")


@dataclass(frozen=True, slots=True)
class EvictionStep:
    """One pod that goes, and where who comes in its place is to be. pod: its name. there, bound: how many of its
    workload were on that node, and on any, before. by: who wrote it, and alone may ask for the eviction.

    ValueError where a name is none.
    """

    pod: str
    uid: str
    workload: str
    node: str
    numa_node: NumaId
    there: Count
    bound: Count
    by: str

    def __post_init__(self) -> None:
        named = _NAME.fullmatch(self.pod) and _NAME.fullmatch(self.node) and _WORKLOAD.fullmatch(self.workload)
        if not named or not self.uid or not self.by:
            raise ValueError("no step")

    @property
    def place(self) -> NumaPlace:
        return NumaPlace(self.node, self.numa_node)


@dataclass(frozen=True, slots=True)
class RegroupRecord:
    """Of one group. asked: when evictions were asked for lately, in seconds since 1970. left: steps that are still to
    come of the plan that is carried out; before: the locality as it began, 0..1, None: there is no such plan. missed:
    steps or plans in a row that did not help, so that none follows before until (seconds since 1970), or none at all:
    halted says why. last: what came of the last step, for people.
    """

    step: EvictionStep | None = None
    asked: tuple[Count, ...] = ()
    left: Count = 0
    before: float | None = None
    missed: Count = 0
    until: Count = 0
    halted: str = ""
    last: str = ""

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    def lately(self, now: float) -> int:
        """How many evictions count against the budget. now: seconds since 1970."""
        return sum(now - LATELY_S < at <= now for at in self.asked)


NO_RECORD = RegroupRecord()

_RECORDS = msgspec.json.Decoder(RegroupRecord)


def read(annotations: Mapping[str, str] | None) -> RegroupRecord:
    """What is no record counts as none."""
    text = (annotations or {}).get(KEY, "")
    if not text or len(text) > LONGEST:
        return NO_RECORD
    try:
        return _RECORDS.decode(text.encode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return NO_RECORD
