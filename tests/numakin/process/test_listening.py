"""A port at every address is one of both families, and its peers are written as they write themselves."""

import socket

import pytest

from numakin.process.listening import both_families, plain, take_both


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the kernel has no IPv6")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
@pytest.mark.parametrize("asked", ["127.0.0.1", "::1"])
def test_every_address_is_of_both_families(host: str, asked: str) -> None:
    with socket.socket(socket.AF_INET6) as listening:
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # as net.ipv6.bindv6only has it
        take_both(listening)
        listening.bind((both_families(host), 0))
        listening.listen()
        with socket.create_connection((asked, listening.getsockname()[1])):
            peer, address = listening.accept()
            peer.close()
            assert plain(address[0]) == asked


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "10.1.2.3", "localhost"])
def test_one_address_stays_what_it_is(host: str) -> None:
    assert both_families(host) == host


def test_where_the_kernel_has_no_ipv6_every_address_is_of_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with ipv6.disable=1."""
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    assert [both_families(host) for host in ("0.0.0.0", "::")] == ["0.0.0.0"] * 2
    with socket.socket() as listening:
        take_both(listening)
        listening.bind(("127.0.0.1", 0))
