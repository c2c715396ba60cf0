"""Certificates that are renewed while a program runs: the new ones are taken over, broken ones never."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from numakin.wire.certificates import BadCertificate, Files, Loaded, Renewed, expiry
from tests.certificates import Authority, Mount, Pair, needed, openssl

pytestmark = needed


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


class Watched:
    """A Secret's volume as a program sees it."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self.mount = Mount(folder, authority.issue("DNS:localhost"), authority.ca)
        self.complaints: list[str] = []
        files = Files(str(self.mount.cert), str(self.mount.key), str(self.mount.ca))
        self.renewed = Renewed(files, self.complaints.append)
        self.renewed.current()

    @property
    def now(self) -> Loaded:
        return self.renewed.current()


@pytest.fixture
def watched(tmp_path: Path, authority: Authority) -> Watched:
    return Watched(tmp_path / "mount", authority)


def test_a_renewed_pair_is_taken_over(watched, authority):
    before = watched.now
    assert watched.now is before
    pair = authority.issue("DNS:localhost", days=5)
    watched.mount.put(pair)
    assert (watched.now.cert, watched.now.key) == (pair.cert, pair.key)
    assert watched.now.expires > before.expires
    assert watched.complaints == []


def test_a_renewed_ca_is_taken_over(watched, tmp_path):
    other = Authority(tmp_path / "other")
    watched.mount.put(ca=other.ca)
    assert watched.now.ca == other.ca.read_bytes()


def broken(how: str, mount: Mount, authority: Authority) -> None:
    pair = authority.issue("DNS:localhost")
    if how == "the key is another certificate's":
        mount.put(Pair(pair.cert, authority.issue("DNS:localhost").key))
    elif how == "the certificate is cut off":
        mount.put(Pair(pair.cert[:200], pair.key))
    elif how == "the key is empty":
        mount.put(Pair(pair.cert, b""))
    elif how == "there is no file any more":
        mount.key.unlink()
    elif how == "the CA is garbage":
        garbage = mount.ca.parent.parent / "garbage"
        garbage.write_bytes(b"garbage")
        mount.put(ca=garbage)


BROKEN = [
    "the key is another certificate's",
    "the certificate is cut off",
    "the key is empty",
    "there is no file any more",
    "the CA is garbage",
]


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_broken_is_not_taken_and_said_once(watched, authority, how):
    before = watched.now
    broken(how, watched.mount, authority)
    assert watched.now is before
    assert watched.now is before
    (complaint,) = watched.complaints
    assert str(watched.mount.key) in complaint
    assert complaint.endswith("the last good ones serve on")


@pytest.mark.parametrize("how", BROKEN)
def test_a_good_pair_after_a_broken_one_is_taken(watched, authority, how):
    broken(how, watched.mount, authority)
    assert watched.now is not None
    pair = authority.issue("DNS:localhost")
    if not watched.mount.key.is_symlink():
        watched.mount.key.symlink_to("..data/tls.key")
    watched.mount.put(pair, authority.ca)
    assert watched.now.cert == pair.cert


@pytest.mark.parametrize("how", BROKEN)
def test_a_program_does_not_start_with_broken_ones(watched, authority, how):
    broken(how, watched.mount, authority)
    files = Files(str(watched.mount.cert), str(watched.mount.key), str(watched.mount.ca))
    with pytest.raises(BadCertificate, match=r"tls\.key"):
        Renewed(files, watched.complaints.append).current()


def test_what_was_broken_from_the_start_is_taken_once_it_is_good(tmp_path, authority):
    mount = Mount(tmp_path / "late", Pair(b"", b""))
    renewed = Renewed(Files(str(mount.cert), str(mount.key)), lambda _why: None)
    assert renewed.expires == 0
    pair = authority.issue("DNS:localhost")
    mount.put(pair)
    assert renewed.expires == expiry(pair.cert)


@pytest.mark.parametrize("days", [1, 300, 40_000])
def test_the_expiry_is_what_openssl_reads(tmp_path, authority, days):
    """40,000 days are past 2050, where certificates write their times in another form."""
    path = tmp_path / "cert"
    pair = authority.issue("DNS:localhost", days=days)
    path.write_bytes(pair.cert)
    received = openssl("x509", "-in", path, "-noout", "-enddate").strip().removeprefix("notAfter=")
    assert datetime.fromtimestamp(expiry(pair.cert), UTC) == datetime.strptime(
        received, "%b %d %H:%M:%S %Y GMT"
    ).replace(tzinfo=UTC)


def test_of_a_chain_the_first_certificates_expiry_counts(authority):
    pair = authority.issue("DNS:localhost")
    assert expiry(pair.cert + authority.ca.read_bytes()) == expiry(pair.cert)
