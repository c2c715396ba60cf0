"""The sock_diag netlink protocol, as bytes: a request for TCP sockets, and what the kernel answers.

Numbers and layouts are those of include/uapi/linux/{netlink,sock_diag,inet_diag,tcp}.h.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from enforcer.observe.bpf.counters import MAPPED

SOCK_DIAG_BY_FAMILY = 20
REQUEST_DUMP = 0x301
NLMSG_ERROR = 2
NLMSG_DONE = 3
NETLINK_HEADER = struct.Struct("=IHHII")
ATTRIBUTE = struct.Struct("=HH")
ERROR = struct.Struct("=i")
COUNTER = struct.Struct("=Q")

ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LISTEN = 1, 4, 5, 8, 10
STATES = 1 << ESTABLISHED | 1 << FIN_WAIT1 | 1 << FIN_WAIT2 | 1 << CLOSE_WAIT | 1 << LISTEN

INFO = 2
CGROUP_ID = 21
EXTENSIONS = 1 << INFO - 1

MESSAGE_SIZE = 72
INFO_BYTES_RECEIVED = 128
"""tcpi_bytes_received in struct tcp_info."""
INFO_DATA_SEGMENTS = 152
"""tcpi_data_segs_in, then tcpi_data_segs_out."""
INFO_BYTES_SENT = 200
"""tcpi_bytes_sent, then tcpi_bytes_retrans: Linux 4.19. (tcpi_bytes_acked lags, and counts a client's SYN.)"""
INFO_SIZE = 216


class DiagError(OSError):
    """The kernel answered a dump with an error."""

    def __init__(self, errno: int) -> None:
        super().__init__(f"sock_diag: errno {errno}")
        self.errno = errno


@dataclass(frozen=True, slots=True)
class TcpConnection:
    """One TCP socket; addresses as 16 bytes. Bytes and segments are payload, since the connection began."""

    cookie: int
    state: int
    local: bytes
    local_port: int
    remote: bytes
    remote_port: int
    cgroup: int
    sent: int
    segments_sent: int
    received: int
    segments_received: int


def request(family: int) -> bytes:
    """A dump of all TCP sockets of one address family."""
    body = struct.pack("=BBBBI", family, 6, EXTENSIONS, 0, STATES) + bytes(48)
    return NETLINK_HEADER.pack(NETLINK_HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 1, 0) + body


def parse(data: bytes) -> tuple[list[TcpConnection], bool]:
    """The connections in one datagram, and whether it was the last. DiagError if the kernel refused."""
    connections: list[TcpConnection] = []
    position = 0
    while position + NETLINK_HEADER.size <= len(data):
        length, kind, *_ = NETLINK_HEADER.unpack_from(data, position)
        body = data[position + NETLINK_HEADER.size : position + length]
        if kind == NLMSG_DONE:
            return connections, True
        if kind == NLMSG_ERROR and len(body) >= ERROR.size:
            raise DiagError(-ERROR.unpack_from(body)[0])
        if kind == SOCK_DIAG_BY_FAMILY and len(body) >= MESSAGE_SIZE:
            connections.append(connection(body))
        position += max(NETLINK_HEADER.size, length + 3 & ~3)
    return connections, False


def connection(body: bytes) -> TcpConnection:
    """One struct inet_diag_msg with its attributes."""
    family, state = body[0], body[1]
    local_port, remote_port = struct.unpack_from(">HH", body, 4)
    (cookie,) = COUNTER.unpack_from(body, 44)
    sent = resent = received = segments_received = segments_sent = cgroup = 0
    for kind, value in attributes(body[MESSAGE_SIZE:]):
        if kind == INFO and len(value) >= INFO_SIZE:
            (received,) = COUNTER.unpack_from(value, INFO_BYTES_RECEIVED)
            sent, resent = struct.unpack_from("=QQ", value, INFO_BYTES_SENT)
            segments_received, segments_sent = struct.unpack_from("=II", value, INFO_DATA_SEGMENTS)
        elif kind == CGROUP_ID and len(value) >= COUNTER.size:
            (cgroup,) = COUNTER.unpack_from(value)
    return TcpConnection(
        cookie,
        state,
        _address(family, body[8:24]),
        local_port,
        _address(family, body[24:40]),
        remote_port,
        cgroup,
        sent - resent,
        segments_sent,
        received,
        segments_received,
    )


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, value) of each netlink attribute."""
    position = 0
    while position + ATTRIBUTE.size <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, position)
        yield kind, data[position + ATTRIBUTE.size : position + length]
        position += max(ATTRIBUTE.size, length + 3 & ~3)


def _address(family: int, field: bytes) -> bytes:
    return MAPPED + field[:4] if family == 2 else field
