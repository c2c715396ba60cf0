"""Keeps numakin's own CA in a Secret, publishes its certificates, and writes this process's own into files.

Every replica does this alike: the first makes the Secret, the others take what is there, and a change goes
through only on the version that was read. A Secret that was deleted or spoilt is written anew as a running replica
knows it: enforcers and kube-scheduler trust that authority. Where the API server does not take a change, what there is
serves on. An authority that has ended is kept: this replica's clock may be wrong. The files are those that the ports
serve by (`numakin.wire.certificates`).
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from extender.kube.api import Api, ApiError, Unreachable
from extender.kube.tls import authorities
from extender.kube.tls.authorities import Authority, KeyPair
from numakin.process.log import Log
from numakin.process.threads import IDLE, Threaded, Threads
from numakin.wire.certificates import Files

CA_SECRET = "numakin-own-ca"  # noqa: S105 - the name of one
SCHEDULER_SECRET = "numakin-kube-scheduler"  # noqa: S105
BUNDLE = "numakin-ca-bundle"
"""The ConfigMap with `ca.crt`: for enforcers, and to copy for kube-scheduler."""

EVERY_S = 60.0
"""Between two checks: so soon a Secret or ConfigMap that was deleted is there again. Certificates are renewed weeks
before they end.
"""

STALE_AFTER_S = 10 * EVERY_S

_CERTIFICATE = re.compile(r"(\d{1,4})\.crt")

_log = Log("certificates")


class OwnCa(Threaded):
    """files: where this process's certificate, key and the bundle are once `ensure` has been."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        services: Sequence[str],
        *,
        threads: Threads,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api, self._namespace, self._clock = api, namespace, clock
        suffixes = ("", f".{namespace}", f".{namespace}.svc", f".{namespace}.svc.cluster.local")
        self._names = [f"{service}{suffix}" for service in services for suffix in suffixes] + ["localhost", "127.0.0.1"]
        self._folder = Path(tempfile.mkdtemp(prefix="numakin-tls-"))
        cert, key, ca = (str(self._folder / name) for name in ("tls.crt", "tls.key", "ca.crt"))
        self.files = Files(cert, key, ca)
        self._kept: tuple[Authority, ...] = ()
        self._thread = threads.thread("certificates", self._round, stale_after_s=STALE_AFTER_S)

    def ensure(self) -> None:
        """One check now. ApiError and Unreachable when the API server has no answer: without one there is no CA."""
        now = self._clock()
        kept = self._kept = self._authorities(now)
        signer, bundle = authorities.signer(kept, now), authorities.bundle(kept)
        self._serve(signer, bundle, now)
        self._publish(bundle)
        try:
            self._issue(signer, bundle, now)
        except ApiError as refused:
            _log.error("no certificate for kube-scheduler", secret=SCHEDULER_SECRET, why=str(refused))

    def stop(self, timeout_s: float = 0.0) -> None:
        """The key is gone with its process."""
        self._thread.stop(timeout_s)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _round(self) -> object:
        if self._thread.stopping.wait(EVERY_S):
            return IDLE
        try:
            self.ensure()
        except (ApiError, Unreachable) as bad:
            _log.warning("certificates not checked", error=str(bad))
            return IDLE
        return None

    def _authorities(self, now: datetime) -> tuple[Authority, ...]:
        """As the Secret has them, renewed there where it is time."""
        stored, version = self._secret(CA_SECRET)
        readable, whole = _parsed(stored)
        known = readable if whole else tuple(dict.fromkeys((*self._kept, *readable)))
        kept = authorities.renewed(known, now)
        if kept == readable:
            return kept
        data = {f"{at}.{end}": part for at, each in enumerate(kept) for end, part in _parts(each.pair)}
        try:
            written = self._put(CA_SECRET, data, version, "Opaque")
        except ApiError as refused:
            if not known:
                raise
            _log.error("the certificate authority is not written", secret=CA_SECRET, why=str(refused))
            return known
        if not written:
            return self._authorities(now)
        _log.info(
            "certificate authority written", secret=CA_SECRET, authorities=len(kept), restored=not whole and bool(known)
        )
        return kept

    def _issue(self, signer: Authority, bundle: bytes, now: datetime) -> None:
        """kube-scheduler's client certificate."""
        stored, version = self._secret(SCHEDULER_SECRET)
        pair = KeyPair(stored.get("tls.crt", b""), stored.get("tls.key", b""))
        if authorities.good(pair, signer, now) and stored.get("ca.crt") == bundle:
            return
        if not authorities.good(pair, signer, now):
            pair = authorities.client_pair(signer, authorities.SCHEDULER, now)
        data = {"tls.crt": pair.cert, "tls.key": pair.key, "ca.crt": bundle}
        if self._put(SCHEDULER_SECRET, data, version, "kubernetes.io/tls"):
            _log.info("certificate for kube-scheduler made", secret=SCHEDULER_SECRET)

    def _serve(self, signer: Authority, bundle: bytes, now: datetime) -> None:
        cert, key, ca = (Path(path) for path in (self.files.cert, self.files.key, self.files.ca))
        pair = KeyPair(cert.read_bytes(), key.read_bytes()) if cert.exists() and key.exists() else KeyPair(b"", b"")
        if not authorities.good(pair, signer, now):
            pair = authorities.server_pair(signer, self._names, now)
            _write(key, pair.key)
            _write(cert, pair.cert)
        _write(ca, bundle)

    def _publish(self, bundle: bytes) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": BUNDLE, "namespace": self._namespace},
            "data": {"ca.crt": bundle.decode()},
        }
        self._api.apply(f"/api/v1/namespaces/{self._namespace}/configmaps/{BUNDLE}", body, manager="numakin")

    def _secret(self, name: str) -> tuple[dict[str, bytes], str]:
        """Its data and version; empty where it is not there."""
        try:
            secret = self._api.get(f"/api/v1/namespaces/{self._namespace}/secrets/{name}").json()
        except ApiError as refused:
            if refused.code == 404:
                return {}, ""
            raise
        data = {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}
        return data, str(secret["metadata"]["resourceVersion"])

    def _put(self, name: str, data: Mapping[str, bytes], version: str, kind: str) -> bool:
        """False when another replica was faster."""
        metadata: dict[str, Any] = {"name": name, "namespace": self._namespace}
        path = f"/api/v1/namespaces/{self._namespace}/secrets"
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": kind,
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
        try:
            if version:
                metadata["resourceVersion"] = version
                self._api.request("PUT", f"{path}/{name}", body=body)
            else:
                self._api.request("POST", path, body=body)
        except ApiError as refused:
            if refused.code == 409:
                return False
            raise
        return True


def _parsed(data: Mapping[str, bytes]) -> tuple[tuple[Authority, ...], bool]:
    """Those that can be read, and whether there are any and they are all; what is damaged is named."""
    parsed, damaged = [], False
    for at in sorted(int(match[1]) for match in map(_CERTIFICATE.fullmatch, data) if match):
        try:
            parsed.append(Authority.read(KeyPair(data.get(f"{at}.crt", b""), data.get(f"{at}.key", b""))))
        except ValueError as bad:
            damaged = True
            _log.warning("a certificate authority can't be read", secret=CA_SECRET, key=f"{at}.crt", why=str(bad))
    return tuple(parsed), bool(parsed) and not damaged


def _parts(pair: KeyPair) -> tuple[tuple[str, bytes], tuple[str, bytes]]:
    return ("crt", pair.cert), ("key", pair.key)


def _write(path: Path, content: bytes) -> None:
    """Writes the file whole or not at all, readable by its owner alone."""
    if path.exists() and path.read_bytes() == content:
        return
    descriptor, draft = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    Path(draft).rename(path)
