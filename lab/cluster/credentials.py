"""The cluster's certificates, keys and tokens, made anew for each run."""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ADMIN, SCHEDULER, CONTROLLER_MANAGER = "admin", "system:kube-scheduler", "system:kube-controller-manager"
"""Users with a token of their own; kubelets have one each, as system:node:NODE."""

EMULATOR_HOST = "10.0.2.2"
"""This machine, as a machine that QEMU emulates on it reaches it."""

_GROUPS = {ADMIN: "system:masters"}
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_DAYS = "30"


@dataclass(frozen=True, slots=True)
class Credentials:
    """tokens: by user. Files of PEM; account_key signs ServiceAccounts' tokens."""

    ca: Path
    cert: Path
    key: Path
    account_key: Path
    token_file: Path
    tokens: Mapping[str, str]

    def kubeconfig(self, server: str, path: Path, user: str) -> Path:
        """Writes the kubeconfig of one of the users."""
        return self.kubeconfig_with(server, path, self.tokens[user])

    def kubeconfig_with(self, server: str, path: Path, token: str) -> Path:
        """Writes one with any token, as a ServiceAccount's. JSON is YAML too."""
        ca = base64.b64encode(self.ca.read_bytes()).decode()
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": ca}}],
                    "users": [{"name": "u", "user": {"token": token}}],
                    "contexts": [{"name": "numakin", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "numakin",
                }
            )
        )
        path.chmod(0o600)
        return path


def made(folder: Path, kubelets: tuple[str, ...] = ()) -> Credentials:
    """New ones in the folder. kubelets: nodes on which a real kubelet will run."""
    folder.mkdir()
    ca, ca_key, request, names = (folder / name for name in ("ca.crt", "ca.key", "server.csr", "names"))
    cert, key, account_key, token_file = (
        folder / name for name in ("server.crt", "server.key", "accounts.key", "tokens.csv")
    )
    _openssl("req", "-x509", *_KEY, "-days", _DAYS, "-keyout", ca_key, "-out", ca, "-subj", "/CN=numakin test CA")
    _openssl("req", *_KEY, "-keyout", key, "-out", request, "-subj", "/CN=kube-apiserver")
    names.write_text(
        f"subjectAltName=IP:127.0.0.1,IP:{EMULATOR_HOST},IP:10.96.0.1,DNS:localhost,DNS:kubernetes.default.svc\n"
    )
    _openssl(
        "x509", "-req", "-in", request, "-out", cert, "-CA", ca, "-CAkey", ca_key, "-set_serial", "1", "-days", _DAYS,
        "-extfile", names,
    )  # fmt: skip
    _openssl("genrsa", "-out", account_key, "2048")
    groups = {**_GROUPS, SCHEDULER: "", CONTROLLER_MANAGER: ""}
    groups |= {f"system:node:{name}": "system:nodes" for name in kubelets}
    tokens = {user: secrets.token_hex(16) for user in groups}
    rows = [f'{tokens[user]},{user},{number},"{group}"' for number, (user, group) in enumerate(groups.items())]
    token_file.write_text("\n".join(rows) + "\n")
    return Credentials(ca, cert, key, account_key, token_file, tokens)


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
