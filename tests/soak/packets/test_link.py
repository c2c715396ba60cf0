"""A link's packets are scrambled by its shares while the kernel's TCP runs over it, and nothing of it is left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.standins.patience import until
from tests.soak.packets import namespaces
from tests.soak.packets.link import Link, RelayGone
from tests.soak.packets.scrambling import Counts, Shares

pytestmark = pytest.mark.skipif(bool(namespaces.missing()), reason=f"needs a link: {namespaces.missing()}")

WAIT_S = 60.0
"""Only ends a test that failed."""

BAD = Shares(lost=0.02, duplicated=0.02, reordered=0.2, delay_s=0.002, held_s=0.02)
SENT = bytes(range(256)) * 2048

PARENT = """
import time
from tests.soak.packets.link import Link
with Link() as link:
    print(link.pid, flush=True)
    time.sleep(3600)
"""


@pytest.fixture
def link() -> Iterator[Link]:
    with Link() as made:
        yield made


def connected(link: Link) -> tuple[socket.socket, socket.socket]:
    """From the node's end, and at the extender's."""
    with link.extender.entered():
        listener = socket.create_server((link.extender.address, 0))
    listener.settimeout(WAIT_S)
    with listener:
        with link.node.entered():
            near = socket.create_connection(listener.getsockname(), timeout=WAIT_S)
        far, _ = listener.accept()
    far.settimeout(WAIT_S)
    return near, far


def received(end: socket.socket) -> bytes:
    data = b""
    while more := end.recv(1 << 16):
        data += more
    return data


def sent(end: socket.socket) -> None:
    end.sendall(SENT)
    end.shutdown(socket.SHUT_WR)


def datagrams(link: Link) -> tuple[socket.socket, socket.socket]:
    with link.node.entered():
        near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with link.extender.entered():
        far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    far.bind((link.extender.address, 0))
    near.connect(far.getsockname())
    far.settimeout(WAIT_S)
    return near, far


def users_of(namespace: int) -> set[int]:
    """Processes in this network namespace, and those with a descriptor of it."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        for name in [*process.glob("fd/*"), process / "ns/net"]:
            with contextlib.suppress(OSError):  # it has gone meanwhile
                if str(name.readlink()) == f"net:[{namespace}]":
                    found.add(int(process.name))
    return found


def test_what_tcp_sends_arrives_whole_both_ways_and_tcp_saw_the_disorder(link: Link) -> None:
    near, far = connected(link)
    with near, far, link.scrambled(BAD, seed=1):
        senders = [threading.Thread(target=sent, args=(end,), daemon=True) for end in (near, far)]
        for sender in senders:
            sender.start()
        assert received(far) == SENT
        assert received(near) == SENT
        for sender in senders:
            sender.join()
    counts = link.counts()
    assert min(counts.lost, counts.duplicated, counts.overtaken) > 0
    seen = [link.node.tcp(), link.extender.tcp()]
    for key in ("RetransSegs", "TCPOFOQueue", "TCPDSACKRecv"):
        assert sum(end[key] for end in seen) > 0, key


def test_each_datagram_comes_as_often_as_the_shares_have_it(link: Link) -> None:
    """A hundred at a time: the devices' and the sockets' own queues lose none of so many."""
    near, far = datagrams(link)
    arrived: list[int] = []
    with near, far, link.scrambled(BAD, seed=2):
        for number in range(2000):
            near.send(str(number).encode())
            if number % 100 < 99:
                continue
            counts = until(lambda number=number: _all_out(link.counts(), number + 1), f"{number + 1} datagrams", WAIT_S)
            while len(arrived) < counts.came - counts.lost + counts.duplicated:
                arrived.append(int(far.recv(100)))
        counts = link.counts()
    assert len(set(arrived)) == 2000 - counts.lost
    assert len(arrived) == 2000 - counts.lost + counts.duplicated
    assert arrived != sorted(arrived)
    assert counts.lost / 2000 == pytest.approx(BAD.lost, abs=0.02)
    assert counts.duplicated / 2000 == pytest.approx(BAD.duplicated, abs=0.02)
    assert counts.held / 2000 == pytest.approx(BAD.reordered, abs=0.06)


def test_afterwards_packets_pass_as_they_are(link: Link) -> None:
    with link.scrambled(Shares(lost=1.0), seed=3):
        pass
    near, far = datagrams(link)
    with near, far:
        for number in range(50):
            near.send(str(number).encode())
        assert [int(far.recv(100)) for _ in range(50)] == list(range(50))
    assert link.counts() == Counts()


def test_nothing_is_left_of_a_link(link: Link) -> None:
    with Link() as other:
        ours = [os.fstat(end.descriptor).st_ino for end in (other.node, other.extender)]
        assert [users_of(namespace) for namespace in ours] == [{os.getpid()}, {os.getpid()}]
        assert not Path("/sys/class/net", namespaces.DEVICE).exists()
        pid = other.pid
    assert not Path(f"/proc/{pid}").exists()
    assert not any(os.getpid() in users_of(namespace) for namespace in ours)  # whose number may be another's by now
    assert link.counts() == Counts()


def test_two_links_do_not_see_each_other(link: Link) -> None:
    with Link() as other, other.scrambled(Shares(lost=1.0), seed=4):
        near, far = connected(link)
        near.close()
        far.close()


def test_a_relay_ends_with_whoever_started_it() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], text=True, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        relay = Path("/proc", parent.stdout.readline().strip())
        assert b"relay" in (relay / "cmdline").read_bytes()
        parent.kill()
    until(lambda: not _runs(relay), "the relay's end", WAIT_S)


def test_a_relay_that_ended_is_told() -> None:
    with Link() as link:
        os.kill(link.pid, signal.SIGKILL)
        with pytest.raises(RelayGone, match="status -9"):
            link.counts()


def _all_out(counts: Counts, number: int) -> Counts | None:
    return counts if counts.came == number and not counts.waiting else None


def _runs(process: Path) -> bool:
    """Not so for one whose parent has not looked after it."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
