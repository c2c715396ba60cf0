"""An extender that refuses nothing and scores nothing, as fast as Python can: what any extender costs at least.

python -m benchmarks.scheduler.noop     prints HOST:PORT and serves until it is killed
"""

from __future__ import annotations

import socket
import threading


def _serve(connection: socket.socket) -> None:
    stream = connection.makefile("rb")
    while request := stream.readline():
        length = 0
        while (header := stream.readline()) not in (b"\r\n", b""):
            if header.lower().startswith(b"content-length:"):
                length = int(header.partition(b":")[2])
        body = stream.read(length)
        filters = request.startswith(b"POST /filter")
        answer = b"{" + body[body.index(b'"NodeNames":') :].strip() if filters else b"[]"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer)
        connection.sendall(head + answer)


def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"127.0.0.1:{listening.getsockname()[1]}", flush=True)
    while True:
        connection, _ = listening.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
