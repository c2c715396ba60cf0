"""numakin's own certificate authorities: when one is made, which one signs, and what is signed. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFE = timedelta(days=3650)
"""A new authority is made when a third of it is left, and signs from when a sixth is left: in the 600 days between,
files that people have copied can be renewed.
"""

SERVER_LIFE = timedelta(days=30)
"""The extender's own certificates, made anew by each process at its start and when a third is left."""

CLIENT_LIFE = timedelta(days=365)
"""kube-scheduler's client certificate, renewed in its Secret when a third is left."""

BACKDATED = timedelta(hours=1)
"""For clocks that are behind."""

MOST_KEPT = 6
"""Authorities that are kept at most, with those that have ended or are not valid yet: where a clock was wrong for a
while, they are the ones that all trust. A right clock needs two at a time.
"""

SCHEDULER = "numakin:kube-scheduler"
"""Common name of the client certificate that may ask for filters and scores."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, in PEM."""

    cert: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Authority:
    """ValueError from `read` where certificate and key are none, or do not belong together."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(compare=False)

    @classmethod
    def read(cls, pair: KeyPair) -> Authority:
        try:
            certificate, key = x509.load_pem_x509_certificate(pair.cert), load_pem_private_key(pair.key, None)
        except (TypeError, UnsupportedAlgorithm) as bad:
            raise ValueError(str(bad)) from bad
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise ValueError("the key does not belong to the certificate")
        return cls(certificate, key)

    @property
    def pair(self) -> KeyPair:
        return KeyPair(_pem(self.certificate), _key_pem(self.key))


def renewed(authorities: Sequence[Authority], now: datetime) -> tuple[Authority, ...]:
    """The authorities to keep, in the order in which they were made: with a new one where it is time.

    None is given up for its dates alone: this clock may be the one that is wrong.
    """
    valid = _valid(authorities, now)
    if valid and not due(valid[-1].certificate, now):
        return tuple(authorities)
    made = [*authorities, _new(now)]
    while len(made) > MOST_KEPT:
        made.remove(next((authority for authority in made if authority not in valid), made[0]))
    return tuple(made)


def signer(authorities: Sequence[Authority], now: datetime) -> Authority:
    """The oldest that has more than a sixth of its life left, since all have it; else the newest."""
    valid = _valid(authorities, now) or authorities
    settled = [authority for authority in valid if _left(authority.certificate, now) > _life(authority.certificate) / 6]
    return settled[0] if settled else valid[-1]


def bundle(authorities: Sequence[Authority]) -> bytes:
    return b"".join(_pem(authority.certificate) for authority in authorities)


def server_pair(authority: Authority, names: Sequence[str], now: datetime) -> KeyPair:
    """names: DNS names and addresses; the first is the common name."""
    alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
    return _signed(authority, names[0], SERVER_LIFE, ExtendedKeyUsageOID.SERVER_AUTH, now, alternatives)


def client_pair(authority: Authority, name: str, now: datetime) -> KeyPair:
    return _signed(authority, name, CLIENT_LIFE, ExtendedKeyUsageOID.CLIENT_AUTH, now)


def due(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether less than a third of its life is left."""
    return _left(certificate, now) < _life(certificate) / 3


def good(pair: KeyPair, authority: Authority, now: datetime) -> bool:
    """Whether this certificate can stay: signed by the authority, with its own key, valid by now, and not due."""
    try:
        certificate = Authority.read(pair).certificate
        certificate.verify_directly_issued_by(authority.certificate)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, a new one is made
        return False
    return certificate.not_valid_before_utc <= now and not due(certificate, now)


def _valid(authorities: Sequence[Authority], now: datetime) -> list[Authority]:
    return [
        authority
        for authority in authorities
        if authority.certificate.not_valid_before_utc <= now < authority.certificate.not_valid_after_utc
    ]


def _new(now: datetime) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"numakin CA {now:%Y-%m-%d}")
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        _builder(name, name, key, CA_LIFE, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def _signed(
    authority: Authority,
    name: str,
    life: timedelta,
    purpose: x509.ObjectIdentifier,
    now: datetime,
    *more: x509.ExtensionType,
) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_name(name), authority.certificate.subject, key, life, now)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    for extension in (*more, x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())):
        builder = builder.add_extension(extension, critical=False)
    return KeyPair(_pem(builder.sign(authority.key, hashes.SHA256())), _key_pem(key))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, life: timedelta, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _left(certificate: x509.Certificate, now: datetime) -> timedelta:
    return certificate.not_valid_after_utc - now


def _life(certificate: x509.Certificate) -> timedelta:
    return certificate.not_valid_after_utc - certificate.not_valid_before_utc


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
