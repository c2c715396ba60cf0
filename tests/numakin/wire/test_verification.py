"""Certificates of others are checked as kubectl checks them, on every Python."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from numakin.wire.certificates import Files, Renewed
from numakin.wire.verification import verifying
from tests.certificates import Authority, Mount, as_on_python_3_13, needed

pytestmark = needed


def shakes_hands(client: ssl.SSLContext, server: ssl.SSLContext, name: str = "localhost") -> None:
    """ssl.SSLError when one of them refuses."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                continue


def presenting(mount: Mount) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(mount.cert, mount.key)
    return context


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Without key usage or an identifier of the authority's key in what it issues."""
    return Authority(tmp_path / "authority")


@pytest.fixture
def server(tmp_path: Path, authority: Authority) -> Mount:
    return Mount(tmp_path / "server", authority.issue("DNS:localhost"))


def test_an_authority_that_python_3_13_refuses_is_believed(authority, server, monkeypatch):
    as_on_python_3_13(monkeypatch)
    with pytest.raises(ssl.SSLCertVerificationError, match="key usage"):
        shakes_hands(ssl.create_default_context(cafile=authority.ca), presenting(server))
    shakes_hands(verifying(str(authority.ca)), presenting(server))


def test_so_is_a_caller_s(tmp_path, authority, server, monkeypatch):
    as_on_python_3_13(monkeypatch)
    mount = Mount(tmp_path / "served", authority.issue("DNS:localhost"), authority.ca)
    served = Renewed(Files(str(mount.cert), str(mount.key), str(mount.ca)), print).current().context
    caller = verifying(str(authority.ca))
    caller.load_cert_chain(server.cert, server.key)
    shakes_hands(caller, served)


def test_another_authority_is_not(tmp_path, server):
    other = Authority(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        shakes_hands(verifying(str(other.ca)), presenting(server))


def test_another_name_is_not(authority, server):
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shakes_hands(verifying(str(authority.ca)), presenting(server), "elsewhere")


def test_without_an_authority_the_systems_are_asked(server):
    with pytest.raises(ssl.SSLCertVerificationError):
        shakes_hands(verifying(), presenting(server))
