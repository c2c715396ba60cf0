import itertools
import socket

import pytest

from enforcer.nri import transport
from enforcer.nri.errors import UsageError
from enforcer.nri.identity import Identity
from enforcer.nri.transport import External, Launched, backoff, launched_by_runtime

GIVEN = {"NRI_PLUGIN_NAME": "numakin", "NRI_PLUGIN_IDX": "10", "NRI_PLUGIN_SOCKET": "3"}


def test_without_the_runtimes_variables_nobody_launched_us():
    assert launched_by_runtime({"PATH": "/bin", "NRI_PLUGIN_NAME": "numakin"}) is None


def test_with_them_the_runtime_says_who_we_are_and_where_our_socket_is():
    assert launched_by_runtime(GIVEN) == (Identity("10", "numakin"), Launched(3))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"NRI_PLUGIN_SOCKET": "x"}, "NRI_PLUGIN_SOCKET='x': must be the number of an open file descriptor"),
        ({"NRI_PLUGIN_SOCKET": ""}, "NRI_PLUGIN_SOCKET='': must be the number of an open file descriptor"),
        ({"NRI_PLUGIN_SOCKET": "-3"}, "NRI_PLUGIN_SOCKET='-3': must be the number of an open file descriptor"),
        ({"NRI_PLUGIN_IDX": "1"}, "NRI plugin index '1': must be two digits, 00 to 99"),
        ({"NRI_PLUGIN_NAME": ""}, "NRI plugin name '': must be letters, digits, '_', '.', '+' or '-', at least one"),
    ],
)
def test_bad_variables_are_told_by_name(change, words):
    with pytest.raises(UsageError) as raised:
        launched_by_runtime(GIVEN | change)
    assert str(raised.value) == words


def test_delays_double_up_to_five_seconds():
    assert list(itertools.islice(backoff(lambda: 0.0), 8)) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_chance_takes_off_up_to_half_of_a_delay():
    assert list(itertools.islice(backoff(lambda: 1.0), 3)) == [0.05, 0.1, 0.2]


def test_no_runtime_listening_is_an_os_error_without_a_socket_left_open(tmp_path):
    with pytest.raises(FileNotFoundError):
        External(str(tmp_path / "nri.sock")).dial()


def test_a_descriptor_that_is_not_open_or_no_socket_is_an_os_error(tmp_path):
    with (tmp_path / "file").open("w") as file, pytest.raises(OSError, match="non-socket"):
        Launched(file.fileno()).dial()
    with pytest.raises(OSError, match="Bad file descriptor"):
        Launched(1 << 16).dial()


def test_a_launched_plugin_takes_the_socket_as_it_is():
    ours, theirs = socket.socketpair()
    with ours, Launched(theirs.detach()).dial() as sock:
        sock.sendall(b"hello")
        assert ours.recv(9) == b"hello"


def test_a_runtime_that_does_not_read_is_waited_for_only_so_long(monkeypatch):
    monkeypatch.setattr(transport, "IO_TIMEOUT_S", 0.05)
    ours, theirs = socket.socketpair()
    with ours, Launched(theirs.detach()).dial() as sock, pytest.raises(BlockingIOError):
        sock.sendall(bytes(64 << 20))
