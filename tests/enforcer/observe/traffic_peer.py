"""A client or server whose every byte is known, run by the tests inside a cgroup and a network namespace.

serve KIND ADDRESS PORT REQUEST REPLY            answers each REQUEST bytes with REPLY bytes; prints "ready" once bound
ask KIND ADDRESS PORT REQUEST REPLY COUNT        COUNT exchanges on each connection; prints
                                                 "answered" and ends with its input

KIND is tcp, udp, sendto (UDP without connect), unix or unixgram. For unix sockets ADDRESS is a path.
-n: connections, one after another. --sources 127.0.1. binds connection i to 127.0.1.i, --bind 10.0.0.1:123 to just that.
--peek looks at each reply before taking it. --extensions sends IPv6 hop-by-hop and destination options along.
"""

import argparse
import os
import socket
import sys
import threading

STREAMS = ("tcp", "unix")
PADDING = bytes([0, 0, 1, 4]) + bytes(4)
"""An IPv6 options header of 8 bytes with nothing but a PadN option in it: Linux drops more than 7 bytes of padding."""


def endpoint(kind, address, port):
    return address if kind.startswith("unix") else (address, port)


def new_socket(kind, address):
    family = socket.AF_UNIX if kind.startswith("unix") else socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM if kind in STREAMS else socket.SOCK_DGRAM)
    if kind == "tcp":
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    return made


def read_exactly(stream, size):
    left = size
    while left:
        chunk = stream.recv(min(left, 1 << 16))
        if not chunk:
            return False
        left -= len(chunk)
    return True


def answer_stream(stream, request, reply):
    with stream:
        while read_exactly(stream, request):
            stream.sendall(b"r" * reply)


def serve(options):
    server = new_socket(options.kind, options.address)
    server.bind(endpoint(options.kind, options.address, options.port))
    if options.kind in STREAMS:
        server.listen(512)
        print("ready", flush=True)
        while True:
            stream, _ = server.accept()
            threading.Thread(target=answer_stream, args=(stream, options.request, options.reply), daemon=True).start()
    print("ready", flush=True)
    while True:
        _, sender = server.recvfrom(1 << 16)
        if sender:
            server.sendto(b"r" * options.reply, sender)


def ask_once(options, index):
    where = endpoint(options.kind, options.address, options.port)
    with new_socket(options.kind, options.address) as asking:
        if options.sources:
            asking.bind((f"{options.sources}{index + 1}", 0))
        if options.bind:
            asking.bind((options.bind.rsplit(":", 1)[0], int(options.bind.rsplit(":", 1)[1])))
        if options.extensions:
            asking.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, PADDING)
            asking.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, PADDING)
        if options.kind == "unixgram":
            asking.bind(f"{options.address}.{os.getpid()}")
        if options.kind != "sendto":
            asking.connect(where)
        for _ in range(options.count):
            if options.kind == "sendto":
                asking.sendto(b"q" * options.request, where)
            else:
                asking.sendall(b"q" * options.request)
            if options.peek:
                asking.recv(options.reply, socket.MSG_PEEK)
            if options.kind in STREAMS:
                if not read_exactly(asking, options.reply):
                    raise SystemExit("the server closed early")
            elif options.reply:
                asking.recv(1 << 16)
        if index == options.connections - 1:
            print("answered", flush=True)
            sys.stdin.read()
        if options.kind in STREAMS:
            asking.shutdown(socket.SHUT_WR)
            asking.recv(1)


def ask(options):
    for index in range(options.connections):
        ask_once(options, index)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=["serve", "ask"])
    parser.add_argument("kind", choices=["tcp", "udp", "sendto", "unix", "unixgram"])
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("request", type=int)
    parser.add_argument("reply", type=int)
    parser.add_argument("count", type=int, nargs="?", default=0)
    parser.add_argument("-n", "--connections", type=int, default=1)
    parser.add_argument("--sources", default="")
    parser.add_argument("--bind", default="")
    parser.add_argument("--peek", action="store_true")
    parser.add_argument("--extensions", action="store_true")
    options = parser.parse_args()
    {"serve": serve, "ask": ask}[options.action](options)


if __name__ == "__main__":
    main()
