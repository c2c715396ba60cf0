"""What real runtimes told a plugin of pods' lives (tests/recordings/nri, `-life` and `-restarted`), decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from enforcer.nri.dispatch import BY_METHOD, BY_STATE_CHANGE
from lab.standins.runtime import framing
from numakin.wire import nri_pb2 as nri
from numakin.wire import ttrpc_pb2
from tests.enforcer.nri import recording

RUNTIMES = {"containerd": "containerd-2.3.4", "cri-o": "crio-1.37.0"}
"""By the names that they give themselves, what is recorded of them."""


@dataclass(frozen=True)
class Told:
    """One event. container: None where it is about a pod."""

    method: str
    pod: nri.PodSandbox
    container: nri.Container | None


@cache
def life(name: str, what: str = "life") -> Sequence[Told]:
    """The events, in their order."""
    return tuple(_events(f"{RUNTIMES[name]}-{what}.jsonl"))


@cache
def asked(name: str, method: str, what: str = "life") -> Any:
    """The request of a call that came once, such as "Configure"."""
    (payload,) = (each.payload for each in _requests(f"{RUNTIMES[name]}-{what}.jsonl") if each.method == method)
    return getattr(nri, f"{method}Request").FromString(payload)


def of(told: Sequence[Told], method: str, pod: str, container: str = "") -> Told:
    """The first such event."""
    return next(
        each
        for each in told
        if (each.method, each.pod.name) == (method, pod) and (not container or each.container.name == container)
    )


def _requests(file: str) -> Iterator[ttrpc_pb2.Request]:
    read = b"".join(step for step in recording.load(file).steps if isinstance(step, bytes))
    for message in recording.messages(read):
        if message.kind == framing.REQUEST:
            yield ttrpc_pb2.Request.FromString(message.payload)


def _events(file: str) -> Iterator[Told]:
    for request in _requests(file):
        if request.method == "StateChange":
            change = nri.StateChangeEvent.FromString(request.payload)
            row = BY_STATE_CHANGE[change.event]
            yield Told(row.method, change.pod, change.container if change.HasField("container") else None)
        elif row := BY_METHOD.get(request.method):
            asked: Any = row.request.FromString(request.payload)
            yield Told(
                row.method, asked.pod, asked.container if "container" in row.request.DESCRIPTOR.fields_by_name else None
            )
