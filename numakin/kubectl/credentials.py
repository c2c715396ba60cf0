"""The credentials of a kubeconfig's user, as kubectl takes them: certificates, tokens, and commands that log in."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from numakin.kubeconfig import BadKubeconfig, Chosen, Entry
from numakin.wire.verification import unstrict

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""Of the ExecCredentials that kubectl exchanges with commands that log in (client-go; v1alpha1 ended with 1.24)."""

LOGIN_S = 300.0
"""The longest that a login takes: it may wait for a person at a browser."""

EARLY_S = 10.0
"""Seconds before its end at which a token is renewed."""

CLUSTER_FIELDS = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
"""What a command that logs in is told of its cluster (client-go's `Cluster` of an ExecCredential)."""


@dataclass(frozen=True, slots=True)
class Login:
    """What a command that logs in gave. certificate, key: PEM. ends_s: seconds since 1970; None: it names no end."""

    token: str = ""
    certificate: str = ""
    key: str = ""
    ends_s: float | None = None


@dataclass(slots=True)
class Credentials:
    """One user's for one cluster; one thread at a time may use them. tls: verifies the server, and shows the user's
    certificate. BadKubeconfig when they can't be used.
    """

    chosen: Chosen
    clock: Callable[[], float] = time.time
    tls: ssl.SSLContext = field(init=False)
    _login: Login | None = None

    def __post_init__(self) -> None:
        self.tls = _verifying(self.chosen.cluster)
        certificate, key = (_content(self.chosen.user, f"client-{part}") for part in ("certificate", "key"))
        if certificate or key:
            _present(self.tls, certificate, key)

    def headers(self) -> list[tuple[str, str]]:
        """What a request says of its user. A login that ends soon is renewed first. BadKubeconfig when that fails."""
        user = self.chosen.user
        command = user.get("exec")
        token = self._logged_in(command).token if command else _token(user, self.clock())
        shown = [("Authorization", f"Bearer {token}")] if token else _password(user)
        return [*shown, *_impersonation(user)]

    def _logged_in(self, command: Entry) -> Login:
        login = self._login
        if login is None or (login.ends_s is not None and self.clock() > login.ends_s - EARLY_S):
            login = self._login = _log_in(command, self.chosen.cluster)
            if login.certificate:
                _present(self.tls, login.certificate, login.key)
        return login


def _verifying(cluster: Entry) -> ssl.SSLContext:
    """By the cluster's authorities, the system's where it names none; not at all where it says so. The system's take a
    twentieth of a second to read: where the server shows no certificate that counts, they are not.
    """
    authorities, unverified = _content(cluster, "certificate-authority"), cluster.get("insecure-skip-tls-verify")
    if not authorities and (unverified or str(cluster.get("server")).startswith("http:")):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        try:
            # Comments between certificates, as in the bundles of distributions, may be in any script.
            pem = authorities.encode("ascii", errors="ignore").decode()
            context = unstrict(ssl.create_default_context(cadata=pem or None))
        except (OSError, ValueError) as bad:
            raise BadKubeconfig("the certificate authority holds no certificate (PEM)") from bad
    if unverified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _content(entry: Entry, key: str) -> str:
    """Of KEY-data, else of the file that KEY names; empty without either."""
    try:
        if data := entry.get(f"{key}-data"):
            return base64.b64decode(data).decode()
        return Path(entry[key]).read_text("utf-8") if entry.get(key) else ""
    except OSError as bad:
        raise BadKubeconfig(f"{key} {entry[key]}: {bad.strerror or bad}") from bad
    except UnicodeDecodeError as bad:
        raise BadKubeconfig(f"{key} is no PEM") from bad


def _present(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    """Python's ssl takes a private key by a file alone; it is there for this moment, for this user."""
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder:
        files = Path(folder) / "certificate", Path(folder) / "key"
        for file, text in zip(files, (certificate, key), strict=True):
            file.touch(mode=0o600)
            file.write_text(text)
        try:
            tls.load_cert_chain(*files, password=_no_passphrase)
        except OSError as bad:
            why = bad.reason if isinstance(bad, ssl.SSLError) and bad.reason else "no PEM"
            raise BadKubeconfig(f"client certificate and key can't be used together: {why}") from bad


def _no_passphrase() -> str:
    """In place of OpenSSL's own question at the terminal, which kubectl does not ask either."""
    raise BadKubeconfig("the client key has a passphrase: kubectl takes none either")


def _token(user: Entry, now: float) -> str:
    if provider := user.get("auth-provider"):
        return _provided(provider, now)
    if path := user.get("tokenFile"):
        try:
            return Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as bad:
            raise BadKubeconfig(f"tokenFile {path}: {getattr(bad, 'strerror', None) or bad}") from bad
    return str(user.get("token") or "").strip()


def _provided(provider: Any, now: float) -> str:
    """The token that kubectl's OIDC provider keeps in the kubeconfig; kubectl renews it there."""
    name = provider.get("name") if isinstance(provider, dict) else None
    if name != "oidc":
        raise BadKubeconfig(f"the user's auth-provider {name!r} is none that kubectl has: use exec")
    token = str((provider.get("config") or {}).get("id-token") or "")
    try:
        payload = token.split(".")[1]
        ends = float(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])
    except (IndexError, ValueError, KeyError, TypeError, RecursionError) as bad:
        raise BadKubeconfig("the user's auth-provider has no id-token: log in first, as for kubectl") from bad
    if ends < now:
        raise BadKubeconfig("the user's id-token has ended: any command of kubectl's renews it, as `kubectl get nodes`")
    return token


def _password(user: Entry) -> list[tuple[str, str]]:
    """For proxies before an API server: of those, none has known passwords since 1.19."""
    if not user.get("username"):
        return []
    pair = base64.b64encode(f"{user['username']}:{user.get('password') or ''}".encode()).decode()
    return [("Authorization", f"Basic {pair}")]


def _impersonation(user: Entry) -> list[tuple[str, str]]:
    """Of another user whom the kubeconfig names: one header for each value."""
    extra = user.get("as-user-extra") or {}
    headers = [
        ("Impersonate-User", user.get("as")),
        ("Impersonate-Uid", user.get("as-uid")),
        *(("Impersonate-Group", group) for group in user.get("as-groups") or ()),
        *((f"Impersonate-Extra-{key}", value) for key, values in extra.items() for value in values),
    ]
    return [(name, str(value)) for name, value in headers if value]


def _log_in(command: Entry, cluster: Entry) -> Login:
    """What the command gives; it may ask at the terminal, and its complaints are the user's to see."""
    version = command.get("apiVersion")
    if version not in EXEC_VERSIONS:
        raise BadKubeconfig(f"the user's exec has apiVersion {version!r}; allowed: {', '.join(EXEC_VERSIONS)}")
    wanted = command.get("interactiveMode") or "IfAvailable"
    interactive = wanted != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if wanted == "Always" and not interactive:
        raise BadKubeconfig(f"the user's exec command {command['command']!r} needs a terminal on standard input")
    spec: dict[str, Any] = {"interactive": interactive}
    if command.get("provideClusterInfo"):
        spec["cluster"] = {key: cluster[key] for key in CLUSTER_FIELDS if key in cluster}
    asked = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    own = {str(row["name"]): str(row.get("value") or "") for row in command.get("env") or ()}
    try:
        done = subprocess.run(
            [command["command"], *map(str, command.get("args") or ())],
            env=os.environ | own | {"KUBERNETES_EXEC_INFO": json.dumps(asked)},
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=LOGIN_S,
            check=True,
        )
        return _login_of(done.stdout, version)
    except subprocess.CalledProcessError as bad:
        why = f"it failed with status {bad.returncode}"
    except subprocess.TimeoutExpired:
        why = f"it gave nothing within {LOGIN_S:.0f} s"
    except OSError as bad:
        why = bad.strerror or str(bad)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        why = f"what it printed is no ExecCredential of {version} with a token or a certificate"
    line = " ".join([command["command"], *map(str, command.get("args") or ())])
    raise BadKubeconfig(f"the user's exec command gave no credentials; run it by hand: {line}: {why}")


def _login_of(printed: bytes, version: str) -> Login:
    """ValueError, KeyError, TypeError, AttributeError or RecursionError where it is none."""
    answer = json.loads(printed)
    status, ends = answer["status"], answer["status"].get("expirationTimestamp")
    certificate, key = status.get("clientCertificateData") or "", status.get("clientKeyData") or ""
    if answer["apiVersion"] != version or not (status.get("token") or (certificate and key)):
        raise ValueError
    return Login(
        status.get("token") or "", certificate, key, datetime.fromisoformat(ends).timestamp() if ends else None
    )
