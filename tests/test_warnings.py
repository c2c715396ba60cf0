"""A warning fails the test that it comes from, but for those that Python itself causes."""

from __future__ import annotations

import gc
import socket
import ssl
import struct

import pytest

RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def test_a_server_that_dies_before_the_tls_handshake_fails_no_test():
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        connection, _ = server.accept()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    connection.close()
    with pytest.raises(OSError, match=r"reset|not connected"):
        ssl.create_default_context().wrap_socket(client, server_hostname="localhost")
    gc.collect()
