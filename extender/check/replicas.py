"""What each replica of the extender answers, over TLS by numakin's own CA."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from numakin.wire.verification import verifying

ANSWER_S = 10.0

ASKED = ("node", "live", "registered")
"""Of a node's row in /api/v1/nodes; a row is kilobytes, and a cluster has thousands."""

_COUNTED = re.compile(r"^(numakin_extender_(?:requests|over_limit)_total)\{([^}]*)\} (\S+)$", re.MULTILINE)


class NoAnswer(Exception):
    """There was no answer, or none of an extender; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class ReplicaAnswer:
    """One replica. missing: why it is not ready; empty when it is. calls: kube-scheduler's that it answered. refused:
    callers without kube-scheduler's certificate. nodes: ASKED of each. unreported: as /api/v1/nodes has it.
    """

    address: str
    missing: str
    calls: float
    refused: float
    nodes: tuple[dict[str, Any], ...]
    unreported: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """By whose certificates an extender is known, and by what token we are. service: HOST:PORT; the certificate has
    its host's name.
    """

    service: str
    ca: Path
    token: Path

    @property
    def name(self) -> str:
        return self.service.rpartition(":")[0]

    def trusted(self) -> ssl.SSLContext:
        """NoAnswer while the extender has not published its CA."""
        try:
            return verifying(str(self.ca))
        except OSError as bad:
            raise NoAnswer(
                f"no certificates of a CA in {self.ca}: the extender has not published the ConfigMap numakin-ca-bundle "
                "(see its log), or the kubelet has not brought it yet"
            ) from bad

    def written_token(self) -> str:
        try:
            return self.token.read_text().strip()
        except OSError as bad:
            raise NoAnswer(f"no token in {self.token}: {bad.strerror}") from bad


def answers(access: Access) -> None:
    """By the Service, which kube-scheduler asks too. NoAnswer where no replica is ready behind it."""
    status, text = _get(access, access.service, "/readyz")
    if status not in (200, 503):
        raise NoAnswer(f"{access.service} answers {status} to /readyz, as no extender does: {text.strip()[:200]}")


def asked(access: Access, address: str) -> ReplicaAnswer:
    """One replica's, by its own address."""
    ready, why = _get(access, address, "/readyz")
    shown, metrics = _get(access, address, "/metrics")
    if shown != 200:
        raise NoAnswer(f"the replica {address} answers {shown} to /metrics: {_worded(metrics)}")
    known = list(_nodes(access, address))
    counted = [(name, labels, float(value)) for name, labels, value in _COUNTED.findall(metrics)]
    return ReplicaAnswer(
        address=address,
        missing="" if ready == 200 else why.strip(),
        calls=sum(value for name, _, value in counted if name.endswith("requests_total")),
        refused=sum(value for _, labels, value in counted if 'limit="certificate"' in labels),
        nodes=tuple({key: node[key] for key in ASKED} for answer in known for node in answer["nodes"]),
        unreported=tuple(known[-1].get("unreported") or ()),
    )


def addresses(replicas: Iterable[str]) -> list[str]:
    """HOST:PORT of every replica; the hosts are names with an address for each."""
    found = set()
    for each in replicas:
        host, _, port = each.rpartition(":")
        try:
            rows = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
        except OSError as bad:
            raise NoAnswer(f"{host} has no address: {bad.strerror}; is the Service there, and a replica?") from bad
        found |= {f"{f'[{row[4][0]}]' if ':' in str(row[4][0]) else row[4][0]}:{port}" for row in rows}
    return sorted(found)


def _nodes(access: Access, address: str) -> Iterator[dict[str, Any]]:
    """The answers that make up the list."""
    path = "/api/v1/nodes"
    while path:
        status, text = _get(access, address, path, access.written_token())
        if status != 200:
            raise NoAnswer(f"the replica {address} does not let this account read ({status}): {_worded(text)}")
        known: dict[str, Any] = json.loads(text)
        yield known
        path = f"/api/v1/nodes?{urlencode({'continue': known['continue']})}" if "continue" in known else ""


def _get(access: Access, address: str, path: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection = _ServiceConnection(address, access)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except ssl.SSLError as bad:
        raise NoAnswer(f"{address} has no certificate of numakin's CA for {access.name}: {_reason(bad)}") from bad
    except (OSError, http.client.HTTPException) as bad:
        raise NoAnswer(
            f"no answer from {address}: {_reason(bad)}; is a replica ready (kubectl get pods), and may this pod "
            "reach it (NetworkPolicies of yours)?"
        ) from bad
    finally:
        connection.close()


class _ServiceConnection(http.client.HTTPSConnection):
    """To an address, whose certificate must be the Service's."""

    def __init__(self, address: str, access: Access) -> None:
        self._trusted, self._name = access.trusted(), access.name
        super().__init__(address, timeout=ANSWER_S, context=self._trusted)

    def connect(self) -> None:
        plain = socket.create_connection((self.host, self.port), self.timeout)
        try:
            self.sock = self._trusted.wrap_socket(plain, server_hostname=self._name)
        except OSError:
            plain.close()
            raise


def _reason(bad: Exception) -> str:
    return getattr(bad, "verify_message", "") or getattr(bad, "strerror", "") or str(bad) or type(bad).__name__


def _worded(text: str) -> str:
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return text.strip()[:200]
