"""The PEM files behind a TLS port or a dial: read anew when they were renewed, and the last good ones kept.

cert-manager and the kubelet renew a mounted Secret by swapping a symlink; others write file by file. What is half
written, or does not fit together, is never used: the last good ones serve on until something good comes.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from numakin.process.files import read_regular, worded
from numakin.wire.verification import unstrict


class BadCertificate(ValueError):
    """Files that can't be used, worded for the operator."""


State = tuple[bytes, bytes, bytes] | str
"""What is in the files: certificate, key and CA; or why they can't be read."""


@dataclass(frozen=True, slots=True)
class Files:
    """Paths, empty for none. cert (a chain) and key belong together; ca: who must have signed the other side's."""

    cert: str = ""
    key: str = ""
    ca: str = ""

    def state(self) -> State:
        try:
            cert, key, ca = (read_regular(path) if path else b"" for path in (self.cert, self.key, self.ca))
        except OSError as bad:
            return worded(bad)
        return cert, key, ca

    def __str__(self) -> str:
        return ", ".join(path for path in (self.cert, self.key, self.ca) if path)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Good ones. context: a server's, which demands a certificate of its caller where there is a CA.

    expires: of `cert`, in seconds since 1970; 0 without one.
    """

    cert: bytes
    key: bytes
    ca: bytes
    context: ssl.SSLContext
    expires: float


class Renewed:
    """May be asked from any thread. complain: called once for each state of the files that is not taken."""

    def __init__(self, files: Files, complain: Callable[[str], None]) -> None:
        self._files, self._complain = files, complain
        self._lock = threading.Lock()
        self._state: State = ""
        self._loaded: Loaded | None = None

    def current(self) -> Loaded:
        """The last good ones; BadCertificate while there were none yet. The files are looked at each time: that is
        three short reads for each handshake.
        """
        with self._lock:
            state = self._files.state()
            if self._loaded is None:
                self._state, self._loaded = state, _loaded(self._files, state)
            elif state != self._state:
                self._state = state
                try:
                    self._loaded = _loaded(self._files, state)
                except BadCertificate as bad:
                    self._complain(f"{bad}; the last good ones serve on")
            return self._loaded

    @property
    def expires(self) -> float:
        """Of the certificate in use, in seconds since 1970; 0 without one."""
        try:
            return self.current().expires
        except BadCertificate:
            return 0.0


def expiry(pem: bytes) -> float:
    """When the first certificate of a chain ends, in seconds since 1970. ValueError when it is no certificate.

    Read by hand from its DER (RFC 5280, section 4.1), since Python's own ssl shows it of a peer's certificate alone.
    """
    text = pem.decode("ascii", errors="ignore")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    der = ssl.PEM_cert_to_DER_cert(begin + text.partition(begin)[2].partition(end)[0] + end)
    _, certificate, _ = _element(der)
    _, signed, _ = _element(certificate)
    tag, _, rest = _element(signed)
    if tag == 0xA0:  # the version, which may be left out; then the serial number came first
        _, _, rest = _element(rest)
    for _ in ("signature", "issuer"):
        _, _, rest = _element(rest)
    _, validity, _ = _element(rest)
    _, _, rest = _element(validity)
    tag, time, _ = _element(rest)
    form = "%y%m%d%H%M%SZ" if tag == 0x17 else "%Y%m%d%H%M%SZ"
    return datetime.strptime(time.decode("ascii"), form).replace(tzinfo=UTC).timestamp()


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """The first element's tag and content, and what comes after it. ValueError when it is cut off."""
    if len(der) < 2:
        raise ValueError("a certificate that is cut off")
    length, at = der[1], 2
    if length & 0x80:
        at += length & 0x7F
        length = int.from_bytes(der[2:at], "big")
    if len(der) < at + length:
        raise ValueError("a certificate that is cut off")
    return der[0], der[at : at + length], der[at + length :]


_SSL_REASONS = {
    "None": "no certificate and key in PEM form",
    "KEY_VALUES_MISMATCH": "the key does not belong to the certificate",
    "NO_CERTIFICATE_OR_CRL_FOUND": "the CA's file holds no certificate in PEM form",
}
"""What OpenSSL's words mean to the operator."""


def _loaded(files: Files, state: State) -> Loaded:
    if isinstance(state, str):
        raise BadCertificate(state)
    cert, key, ca = state
    context = unstrict(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))
    try:
        if cert:
            context.load_cert_chain(files.cert, files.key)
        if ca:
            context.load_verify_locations(files.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        expires = expiry(cert) if cert else 0.0
    except (OSError, ValueError) as bad:  # ssl.SSLError is an OSError
        why = _SSL_REASONS.get(str(getattr(bad, "reason", "")), str(bad))
        raise BadCertificate(f"{files}: {why}") from bad
    if files.state() != state:
        raise BadCertificate(f"{files}: changed while they were read")
    return Loaded(cert, key, ca, context, expires)
