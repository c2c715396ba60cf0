"""NRI's multiplexer: two logical connections over one unix socket, as bytes in and frames out.

A frame is an 8-byte header (connection id and payload length, big-endian u32 each) and its payload. A connection is
a byte stream: frames need not align with the messages inside it, in either direction.
"""

import struct
from typing import NamedTuple

from enforcer.nri.errors import PeerError

PLUGIN_CONNECTION = 1  # the runtime calls us here
RUNTIME_CONNECTION = 2  # we call the runtime here
CONNECTIONS = frozenset({PLUGIN_CONNECTION, RUNTIME_CONNECTION})

HEADER = struct.Struct(">II")

# The largest frame that any runtime writes: 0.6.1 allows 16 MiB, later ones 4 MiB and a ttrpc header.
MAX_INCOMING_FRAME = 1 << 24

# The runtime reads a connection through a buffer of this size, and gives up on a frame that is longer than
# what it reads into.
READ_BUFFER = 4096

# The runtime queues at most 256 unread frames of a connection and closes the socket on the next one. A quarter of
# it leaves room for our other messages.
MAX_SMALL_FRAMES = 64


class Frame(NamedTuple):
    """A piece of one logical connection's byte stream."""

    connection: int
    payload: bytes


class Demux:
    """Takes the socket's bytes, however they are split, and returns whole frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> list[Frame]:
        """Frames completed by `data`. Raises PeerError where the header can't be a runtime's."""
        if not self._buffer and (frame := _whole(data)):
            return [frame]
        self._buffer += data
        frames, start = [], 0
        while len(self._buffer) - start >= HEADER.size:
            connection, size = HEADER.unpack_from(self._buffer, start)
            _check_header(connection, size)
            end = start + HEADER.size + size
            if len(self._buffer) < end:
                break
            frames.append(Frame(connection, bytes(self._buffer[start + HEADER.size : end])))
            start = end
        del self._buffer[:start]
        return frames

    @property
    def pending(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._buffer)


def _whole(data: bytes | memoryview) -> Frame | None:
    """The one frame that the data is, as nearly always."""
    if len(data) < HEADER.size:
        return None
    connection, size = HEADER.unpack_from(data)
    _check_header(connection, size)
    return Frame(connection, bytes(data[HEADER.size :])) if len(data) == HEADER.size + size else None


def _check_header(connection: int, size: int) -> None:
    if connection not in CONNECTIONS:
        raise PeerError(f"the runtime sent a frame for connection {connection}; NRI has 1 and 2 only")
    if size > MAX_INCOMING_FRAME:
        raise PeerError(f"the runtime sent a frame of {size} bytes; at most {MAX_INCOMING_FRAME} are allowed")


def encode(connection: int, message: bytes) -> bytes:
    """One whole ttrpc message as frames that the runtime's Go reader survives.

    No frame is longer than READ_BUFFER, unless that would take more than MAX_SMALL_FRAMES (answers over 256 KiB):
    then the first frame is READ_BUFFER long and the second is the rest, as NRI's own Go plugins write. The reader
    knows the message's length from the first, so it reads the second straight into a buffer of just that size.
    This holds only while every message starts a frame of its own, which is why messages are encoded one by one.
    """
    if len(message) <= READ_BUFFER:
        return HEADER.pack(connection, len(message)) + message
    small = len(message) <= READ_BUFFER * MAX_SMALL_FRAMES
    step = READ_BUFFER if small else len(message)
    starts = [0, *range(READ_BUFFER, len(message), step)]
    ends = [*starts[1:], len(message)]
    return b"".join(
        HEADER.pack(connection, end - start) + message[start:end] for start, end in zip(starts, ends, strict=True)
    )
