"""ttrpc: calls and answers with a 10-byte header, as bytes in and messages out.

The header is the payload's length (big-endian u32), the stream id (u32; the caller's are odd and increase), the type
(u8) and flags (u8, 0 for the plain calls that NRI makes; ignored).
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from enforcer.nri.errors import PeerError, UsageError
from numakin.wire import ttrpc_pb2

HEADER = struct.Struct(">IIBB")

# What Go's ttrpc takes at most; it throws a longer message away.
MAX_OUTGOING = 4 << 20

# What of it a call's own message may take, with room for the service, the method and the stream around it.
MAX_PAYLOAD = MAX_OUTGOING - 256

# containerd 1.7 sends its whole state in one message whatever its size (5.2 MB was seen), so we take more than
# ttrpc's own 4 MiB. NRI 0.6.1 can't write more than 16 MiB; this is four times that.
MAX_INCOMING = 64 << 20


class FrameKind(IntEnum):
    """A message's type. DATA belongs to streaming calls, which NRI has none of."""

    REQUEST = 1
    RESPONSE = 2
    DATA = 3


_KINDS = {int(kind): kind for kind in FrameKind}


class Code(IntEnum):
    """The status codes (google.rpc.Code) that we send."""

    INVALID_ARGUMENT = 3
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12


class Message(NamedTuple):
    """One ttrpc message; `payload` is a serialized ttrpc Request or Response."""

    stream: int
    kind: FrameKind
    payload: bytes


@dataclass(frozen=True, slots=True)
class Oversized:
    """A message over MAX_INCOMING: its `length` bytes are thrown away as they come."""

    stream: int
    kind: FrameKind
    length: int


class Decoder:
    """Takes the bytes of one logical connection, however they are split, and returns whole messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._discard = 0

    def feed(self, data: bytes) -> list[Message | Oversized]:
        """Messages completed by `data`; an oversized one is returned when its header has come. Raises PeerError."""
        if not self._buffer and not self._discard and (message := _whole(data)):
            return [message]
        self._buffer += data
        messages: list[Message | Oversized] = []
        start = self._skip(0)
        while len(self._buffer) - start >= HEADER.size:
            length, stream, kind, _flags = HEADER.unpack_from(self._buffer, start)
            body = start + HEADER.size
            if length > MAX_INCOMING:
                messages.append(Oversized(stream, _kind(kind), length))
                self._discard = length
                start = self._skip(body)
                continue
            checked = _kind(kind)
            if len(self._buffer) < body + length:
                break
            messages.append(Message(stream, checked, bytes(self._buffer[body : body + length])))
            start = body + length
        del self._buffer[:start]
        return messages

    @property
    def pending(self) -> bool:
        """Whether a message has begun and not ended."""
        return bool(self._buffer or self._discard)

    def _skip(self, start: int) -> int:
        skipped = min(self._discard, len(self._buffer) - start)
        self._discard -= skipped
        return start + skipped


def _whole(data: bytes) -> Message | None:
    """The one message that the data is, as nearly always."""
    if len(data) < HEADER.size:
        return None
    length, stream, kind, _flags = HEADER.unpack_from(data)
    if length > MAX_INCOMING or len(data) != HEADER.size + length:
        return None
    return Message(stream, _kind(kind), data[HEADER.size :])


def _kind(number: int) -> FrameKind:
    kind = _KINDS.get(number)
    if kind is None:
        raise PeerError(f"the runtime sent a ttrpc message of type {number}; 1, 2 and 3 are known")
    return kind


def encode(stream: int, kind: FrameKind, payload: bytes) -> bytes:
    """One message as bytes. Raises UsageError over MAX_OUTGOING."""
    if len(payload) > MAX_OUTGOING:
        raise UsageError(f"a ttrpc message of {len(payload)} bytes: the runtime takes at most {MAX_OUTGOING}")
    return HEADER.pack(len(payload), stream, kind, 0) + payload


def encode_request(stream: int, service: str, method: str, payload: bytes) -> bytes:
    """A call without a timeout of ours: the runtime answers UpdateContainers only after its container tool ran."""
    request = ttrpc_pb2.Request(service=service, method=method, payload=payload)
    return encode(stream, FrameKind.REQUEST, request.SerializeToString())


def encode_answer(stream: int, payload: bytes) -> bytes:
    """A successful answer to the call of that stream."""
    return encode(stream, FrameKind.RESPONSE, ttrpc_pb2.Response(payload=payload).SerializeToString())


def encode_refusal(stream: int, code: Code, message: str) -> bytes:
    """An error answer to the call of that stream."""
    status = ttrpc_pb2.Status(code=int(code), message=message)
    return encode(stream, FrameKind.RESPONSE, ttrpc_pb2.Response(status=status).SerializeToString())
