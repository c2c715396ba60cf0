"""Messages from and to the bytes of the runtime's requests and answers."""

from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from enforcer.nri import ttrpc
from enforcer.nri.errors import PeerError, UsageError

M = TypeVar("M", bound=Message)


def serialized(answer: Message) -> bytes:
    """UsageError for an answer over what the runtime takes: it would throw it away, and wait for one."""
    payload = answer.SerializeToString()
    if len(payload) > ttrpc.MAX_PAYLOAD:
        raise UsageError(f"an answer of {len(payload)} bytes: at most {ttrpc.MAX_PAYLOAD} can be sent")
    return payload


def decoded(kind: type[M], payload: bytes, what: str) -> M:
    """what: for the error, a PeerError."""
    try:
        return kind.FromString(payload)
    except DecodeError as error:
        raise PeerError(f"the runtime sent a {what} that can't be decoded as {kind.DESCRIPTOR.full_name}") from error


def subject(request: Any) -> str:
    """The pod and container of a request, for the log."""
    pod, container = getattr(request, "pod", None), getattr(request, "container", None)
    if pod is None:
        return ""
    where = f" for pod {pod.namespace}/{pod.name}"
    return f"{where} container {container.name} ({container.id})" if container is not None and container.id else where
