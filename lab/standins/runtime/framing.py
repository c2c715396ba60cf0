"""The wire as NRI's Go runtime writes and reads it, written from the runtime's side alone: it shares no code with
the plugin that it is a peer for, so that a mistake in one does not hide in the other.

Its read side is as unforgiving as the real one: see `Incoming`.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

MUX_HEADER = struct.Struct(">II")
TTRPC_HEADER = struct.Struct(">IIBB")

# Go's bufio sizes, on both sides.
BUFFER = 4096

# What ttrpc takes in one message.
MAX_MESSAGE = 4 << 20

REQUEST, RESPONSE = 1, 2


class BrokenWireError(Exception):
    """The plugin sent what makes the real runtime close the connection."""


@dataclass(frozen=True, slots=True)
class Message:
    """A ttrpc message of one logical connection."""

    connection: int
    stream: int
    kind: int
    payload: bytes


def write(message: Message) -> bytes:
    """As Go's buffered writer emits it: a first frame that fills the buffer, then the rest as one."""
    header = TTRPC_HEADER.pack(len(message.payload), message.stream, message.kind, 0)
    data = header + message.payload
    frames = [data[:BUFFER], data[BUFFER:]]
    return b"".join(MUX_HEADER.pack(message.connection, len(frame)) + frame for frame in frames if frame)


class Incoming:
    """Frames to messages. A frame must fit what Go's reader holds out for it: its buffer, or the rest of a long
    message. One that does not is ENOMEM there, and the end of the connection.
    """

    def __init__(self) -> None:
        self._trunk = bytearray()
        self._streams: dict[int, bytearray] = {}

    def feed(self, data: bytes) -> Iterator[Message]:
        self._trunk += data
        while len(self._trunk) >= MUX_HEADER.size:
            connection, size = MUX_HEADER.unpack_from(self._trunk)
            end = MUX_HEADER.size + size
            if len(self._trunk) < end:
                return
            frame = bytes(self._trunk[MUX_HEADER.size : end])
            del self._trunk[:end]
            yield from self._take(connection, frame)

    def _take(self, connection: int, frame: bytes) -> Iterator[Message]:
        stream = self._streams.setdefault(connection, bytearray())
        room = max(BUFFER, _rest_of_message(stream))
        if len(frame) > room:
            raise BrokenWireError(f"a frame of {len(frame)} bytes where {room} fit (ENOMEM)")
        stream += frame
        while _rest_of_message(stream) == 0 and stream:
            length, number, kind, _ = TTRPC_HEADER.unpack_from(stream)
            end = TTRPC_HEADER.size + length
            if length > MAX_MESSAGE:
                raise BrokenWireError(f"a ttrpc message of {length} bytes")
            yield Message(connection, number, kind, bytes(stream[TTRPC_HEADER.size : end]))
            del stream[:end]


def _rest_of_message(stream: bytearray) -> int:
    """Bytes that the first message lacks; at least 1 while its header is not whole."""
    if len(stream) < TTRPC_HEADER.size:
        return 1
    length = TTRPC_HEADER.unpack_from(stream)[0]
    return int(max(0, TTRPC_HEADER.size + length - len(stream)))
