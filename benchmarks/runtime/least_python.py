"""The least NRI plugin in Python: one thread, no library but the standard one while it answers, one and the same cpuset
for each container. What a product in Python can't be faster than.

    python -m benchmarks.runtime.least_python SOCKET
"""

from __future__ import annotations

import socket
import struct
import sys

from numakin.wire import nri_pb2 as nri
from numakin.wire import ttrpc_pb2

MUX, TTRPC = struct.Struct(">II"), struct.Struct(">IIBB")
RUNTIME, PLUGIN = 2, 1
REQUEST, RESPONSE = 1, 2
EVENTS = sum(1 << number - 1 for number in (1, 2, 3, 4, 8, 10, 11))


def response(message=None) -> bytes:
    return ttrpc_pb2.Response(payload=message.SerializeToString() if message else b"").SerializeToString()


CPU = nri.LinuxCPU(cpus="0-1", mems="0")
ADJUST = nri.ContainerAdjustment(linux=nri.LinuxContainerAdjustment(resources=nri.LinuxResources(cpu=CPU)))
ANSWERS = {
    b"Configure": response(nri.ConfigureResponse(events=EVENTS)),
    b"CreateContainer": response(nri.CreateContainerResponse(adjust=ADJUST)),
}
NOTHING = response()


def register() -> bytes:
    name = nri.RegisterPluginRequest(plugin_name="least", plugin_idx="10")
    request = ttrpc_pb2.Request(
        service="nri.pkg.api.v1alpha1.Runtime", method="RegisterPlugin", payload=name.SerializeToString()
    )
    return framed(RUNTIME, 1, REQUEST, request.SerializeToString())


def framed(connection: int, stream: int, kind: int, body: bytes) -> bytes:
    return MUX.pack(connection, TTRPC.size + len(body)) + TTRPC.pack(len(body), stream, kind, 0) + body


def method_of(request: bytes) -> bytes:
    """The second field; the service before it and the method are shorter than 128 bytes."""
    at = 2 + request[1]
    return request[at + 2 : at + 2 + request[at + 1]]


def main(path: str) -> None:
    runtime = socket.socket(socket.AF_UNIX)
    runtime.connect(path)
    runtime.sendall(register())
    received, streams = b"", {RUNTIME: b"", PLUGIN: b""}
    while data := runtime.recv(1 << 18):
        received += data
        while len(received) >= MUX.size:
            connection, size = MUX.unpack_from(received)
            if len(received) < MUX.size + size:
                break
            stream = streams[connection] + received[MUX.size : MUX.size + size]
            received = received[MUX.size + size :]
            while len(stream) >= TTRPC.size:
                length, number, kind, _ = TTRPC.unpack_from(stream)
                if len(stream) < TTRPC.size + length:
                    break
                body, stream = stream[TTRPC.size : TTRPC.size + length], stream[TTRPC.size + length :]
                if kind == REQUEST:
                    runtime.sendall(framed(PLUGIN, number, RESPONSE, ANSWERS.get(method_of(body), NOTHING)))
            streams[connection] = stream


if __name__ == "__main__":
    main(sys.argv[1])
