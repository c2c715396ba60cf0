"""The table of container and pod events: each event's own call, its messages, and how its handler is called.

Before NRI 0.12 most events have no call of their own and come as StateChange; both ways end at the same row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from enforcer.nri.events import Event, mask_of
from enforcer.nri.handlers import Handlers
from numakin.wire import nri_pb2 as nri


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event. `call(handler, request)` runs the handler and makes the answer of its result."""

    event: Event
    method: str
    handler: str
    request: type[Message]
    response: type[Message]
    call: Callable[[Any, Any], Message]


def _pod(handler: Any, request: Any) -> Message:
    handler(request.pod)
    return nri.Empty()


def _container(handler: Any, request: Any) -> Message:
    handler(request.pod, request.container)
    return nri.Empty()


def _create(handler: Any, request: Any) -> Message:
    adjust, update = handler(request.pod, request.container)
    return nri.CreateContainerResponse(adjust=adjust, update=update)


def _update(handler: Any, request: Any) -> Message:
    update = handler(request.pod, request.container, request.linux_resources)
    return nri.UpdateContainerResponse(update=update)


def _stop(handler: Any, request: Any) -> Message:
    return nri.StopContainerResponse(update=handler(request.pod, request.container))


def _update_pod(handler: Any, request: Any) -> Message:
    handler(request.pod, request.overhead_linux_resources, request.linux_resources)
    return nri.Empty()


def _validate(handler: Any, request: Any) -> Message:
    reason = handler(request)
    return nri.ValidateContainerAdjustmentResponse(reject=bool(reason), reason=reason)


def _row(event: Event, method: str, call: Callable[[Any, Any], Message]) -> EventRow:
    request, response = getattr(nri, method + "Request"), getattr(nri, method + "Response")
    return EventRow(event, method, event.name.lower(), request, response, call)


ROWS = (
    _row(Event.RUN_POD_SANDBOX, "RunPodSandbox", _pod),
    _row(Event.UPDATE_POD_SANDBOX, "UpdatePodSandbox", _update_pod),
    _row(Event.POST_UPDATE_POD_SANDBOX, "PostUpdatePodSandbox", _pod),
    _row(Event.STOP_POD_SANDBOX, "StopPodSandbox", _pod),
    _row(Event.REMOVE_POD_SANDBOX, "RemovePodSandbox", _pod),
    _row(Event.CREATE_CONTAINER, "CreateContainer", _create),
    _row(Event.POST_CREATE_CONTAINER, "PostCreateContainer", _container),
    _row(Event.START_CONTAINER, "StartContainer", _container),
    _row(Event.POST_START_CONTAINER, "PostStartContainer", _container),
    _row(Event.UPDATE_CONTAINER, "UpdateContainer", _update),
    _row(Event.POST_UPDATE_CONTAINER, "PostUpdateContainer", _container),
    _row(Event.STOP_CONTAINER, "StopContainer", _stop),
    _row(Event.REMOVE_CONTAINER, "RemoveContainer", _container),
    _row(Event.VALIDATE_CONTAINER_ADJUSTMENT, "ValidateContainerAdjustment", _validate),
)
BY_METHOD = {row.method: row for row in ROWS}

# The events that a StateChange can carry: its message has a pod and a container, so only the rows that need no more.
BY_STATE_CHANGE = {int(row.event): row for row in ROWS if row.call in (_pod, _container)}


def subscription(handlers: Handlers, valid_events: int) -> int:
    """The events that there are handlers for, within what the runtime accepts."""
    wanted = mask_of(row.event for row in ROWS if getattr(handlers, row.handler) is not None)
    return wanted & valid_events
