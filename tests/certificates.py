"""Certificates made with openssl, and a Secret's volume as the kubelet keeps it."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from urllib3.util import ssl_

needed = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(*arguments: str | Path) -> str:
    done = subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, text=True)
    return done.stdout


def as_on_python_3_13(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients' defaults are as strict as there, those of urllib3 included."""
    before = ssl.create_default_context

    def strict(*arguments: Any, **more: Any) -> ssl.SSLContext:
        context = before(*arguments, **more)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    monkeypatch.setattr(ssl_, "sys", SimpleNamespace(version_info=(3, 13)))


@dataclass(frozen=True)
class Pair:
    """PEM."""

    cert: bytes
    key: bytes

    @property
    def der(self) -> bytes:
        """The certificate, as a peer's socket has it."""
        return ssl.PEM_cert_to_DER_cert(self.cert.decode())


class Authority:
    """A CA in a folder of its own, which it makes; each has another key."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self._numbers = folder, count(1)
        self.ca, self._key = folder / "ca.crt", folder / "ca.key"
        openssl("req", "-x509", *_KEY, "-days", "9", "-keyout", self._key, "-out", self.ca, "-subj", "/CN=test CA")

    def issue(self, *names: str, days: int = 2) -> Pair:
        """A certificate for these names, "DNS:localhost" or "IP:127.0.0.1", for either side."""
        number = next(self._numbers)
        key, request, cert, extensions = (self._folder / f"{number}.{end}" for end in ("key", "csr", "crt", "names"))
        openssl("req", *_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={names[0].partition(':')[2]}")
        extensions.write_text(f"subjectAltName={','.join(names)}\n")
        signed = ("-CA", self.ca, "-CAkey", self._key, "-set_serial", str(number), "-days", str(days))
        openssl("x509", "-req", "-in", request, "-out", cert, *signed, "-extfile", extensions)
        return Pair(cert.read_bytes(), key.read_bytes())


class Mount:
    """A mounted Secret: its files are links through `..data`, which is swapped whole when the Secret changes."""

    def __init__(self, folder: Path, pair: Pair | None = None, ca: Path | None = None) -> None:
        folder.mkdir()
        self._folder, self._numbers = folder, count(1)
        self.cert, self.key, self.ca = (folder / name for name in ("tls.crt", "tls.key", "ca.crt"))
        self._now: dict[str, bytes] = {}
        self.put(pair, ca)

    def put(self, pair: Pair | None = None, ca: Path | None = None) -> None:
        """What is not given stays as it is."""
        if pair is not None:
            self._now |= {"tls.crt": pair.cert, "tls.key": pair.key}
        if ca is not None:
            self._now["ca.crt"] = ca.read_bytes()
        fresh = self._folder / f"..{next(self._numbers)}"
        fresh.mkdir()
        for name, content in self._now.items():
            (fresh / name).write_bytes(content)
            link = self._folder / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        draft = self._folder / "..data_tmp"
        draft.symlink_to(fresh.name)
        draft.rename(self._folder / "..data")
