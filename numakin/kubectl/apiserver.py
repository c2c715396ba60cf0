"""The API server as the user's kubeconfig names it, and requests to it with the user's credentials."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

import urllib3
from websocket import WebSocket, create_connection

from numakin.kubeconfig import BadKubeconfig, Chosen, chosen
from numakin.kubectl.credentials import Credentials
from numakin.kubectl.errors import Unanswered, UsageError
from numakin.kubectl.proxies import proxy_for

CONNECT_S = 5.0
READ_S = 30.0
LARGEST_ANSWER = 256 << 20
"""Bytes. The nodes of a cluster of 5,000 are some 20 MB."""

PAGE = 500
"""Objects that are asked for at once, as by kubectl: all pods of a large cluster are more than one answer may be."""

AT_ONCE = 16
"""Connections that are kept open."""

AGENT = "kubectl-numakin"

_FORBIDDEN = 403

_NOWHERE = "numakin.invalid"
"""A host that is never asked (RFC 2606). Where no exception is named, websocket-client takes those of NO_PROXY."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, whatever its status."""

    status: int
    body: bytes

    def json(self) -> Any:
        """Unanswered when it is no JSON: a proxy in between may answer in the server's place."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as bad:
            raise Unanswered(f"an answer that is no JSON: {self.body[:80]!r}") from bad

    @property
    def why(self) -> str:
        """The message of a Status or of the extender's own error; else the text's first line."""
        try:
            answer = json.loads(self.body)
        except (ValueError, RecursionError):
            answer = None
        if isinstance(answer, dict):
            return str(answer.get("message") or answer.get("error") or answer.get("reason") or self.status)
        lines = self.body.decode(errors="replace").strip().splitlines()
        return lines[0][:300] if lines else f"HTTP {self.status}"


def asked(
    pool: urllib3.PoolManager, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, read_s: float
) -> Answer:
    """HTTPError and OSError where none comes."""
    timeout = urllib3.Timeout(connect=CONNECT_S, read=read_s)
    response = pool.request(
        method, url, headers=headers, body=body, timeout=timeout, retries=False, preload_content=False
    )
    content = response.read(LARGEST_ANSWER)
    response.release_conn()
    return Answer(response.status, content)


class ApiServer:
    """One API server with one user's credentials; threads may share it. namespace: the context's own. BadKubeconfig
    when the kubeconfig's context can't be used.
    """

    def __init__(self, context: Chosen) -> None:
        self.namespace = context.namespace or "default"
        self._host = str(context.cluster["server"]).rstrip("/")
        self._name = str(context.cluster.get("tls-server-name") or "")
        self._proxy = _proxy(context)
        self._credentials = Credentials(context)
        self._lock = Lock()
        self._authorized()
        options: dict[str, Any] = {"maxsize": AT_ONCE, "ssl_context": self._credentials.tls}
        if self._name:
            options |= {"server_hostname": self._name}
        if context.cluster.get("insecure-skip-tls-verify"):
            options |= {"cert_reqs": "CERT_NONE", "assert_hostname": False}
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # it is what the kubeconfig says
        self._pool = urllib3.ProxyManager(self._proxy, **options) if self._proxy else urllib3.PoolManager(**options)

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        return self.request("GET", path, query)

    def object(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """An object or a list of them. Unanswered when it is refused."""
        answer = self.get(path, query)
        if answer.status == _FORBIDDEN:
            raise Unanswered(f"the API server does not allow this: {answer.why}")
        if answer.status >= 400:
            raise Unanswered(f"GET {path}: {answer.status} {answer.why}")
        return answer.json()

    def listed(self, path: str, query: Mapping[str, str] | None = None) -> Iterator[Any]:
        """The objects of a list, however many, page by page. Unanswered when it is refused."""
        page = {**(query or {}), "limit": str(PAGE)}
        while True:
            answer = self.object(path, page)
            yield from answer.get("items") or ()
            rest = (answer.get("metadata") or {}).get("continue")
            if not rest:
                return
            page["continue"] = rest

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        more_headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Unanswered when there is no answer at all."""
        said = {"Accept": "application/json", "User-Agent": AGENT, **(more_headers or {})}
        if body is not None:
            said.setdefault("Content-Type", "application/json")
        url = self._host + path + (f"?{urlencode(query)}" if query else "")
        try:
            headers = urllib3.HTTPHeaderDict(said)
            for name, value in self._authorized():
                headers.add(name, value)
            answer = asked(self._pool, method, url, headers=headers, body=body, read_s=READ_S)
        except (urllib3.exceptions.HTTPError, OSError, BadKubeconfig) as bad:
            raise Unanswered(f"no answer from the API server {self._host}: {reason(bad)}") from bad
        if len(answer.body) == LARGEST_ANSWER:
            raise Unanswered(f"{method} {path}: the answer is larger than {LARGEST_ANSWER >> 20} MiB")
        return answer

    def open_socket(
        self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str], timeout_s: float
    ) -> WebSocket:
        """A web socket. OSError, WebSocketException or BadKubeconfig when it is refused, or not open in time."""
        scheme, _, rest = self._host.partition("://")
        proxy = urlsplit(self._proxy)
        tls = {"context": self._credentials.tls} | ({"server_hostname": self._name} if self._name else {})
        return create_connection(
            f"{'wss' if scheme == 'https' else 'ws'}://{rest}{path}?{urlencode(query)}",
            timeout_s,
            header=[f"{name}: {value}" for name, value in (*self._authorized(), ("User-Agent", AGENT))],
            subprotocols=list(protocols),
            sslopt=tls,
            suppress_origin=True,
            http_proxy_host=proxy.hostname,
            http_proxy_port=proxy.port,
            http_proxy_auth=(unquote(proxy.username), unquote(proxy.password or "")) if proxy.username else None,
            http_no_proxy=[_NOWHERE] if self._proxy else ["*"],
        )

    def _authorized(self) -> list[tuple[str, str]]:
        with self._lock:
            return self._credentials.headers()


def connect(kubeconfig: str, context: str) -> ApiServer:
    """The API server of a kubeconfig's context. kubeconfig: empty as kubectl has it, $KUBECONFIG or ~/.kube/config.

    UsageError when there is none, or it can't be used.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    paths = [path for path in named.split(os.pathsep) if path]
    present = [path for path in paths if Path(path).exists()]
    if not present:
        raise UsageError(
            f"no kubeconfig at {' or '.join(paths) or named}: name one by --kubeconfig or $KUBECONFIG, or "
            "an extender by --extender http://HOST:PORT"
        )
    try:
        return ApiServer(chosen(present, context))
    except BadKubeconfig as bad:
        raise UsageError(f"kubeconfig {named}: {' '.join(str(bad).split())}") from bad


def _proxy(context: Chosen) -> str:
    """The proxy's URL: the cluster's own, else the environment's, as kubectl has it. Empty without one."""
    proxy = str(context.cluster.get("proxy-url") or "") or proxy_for(str(context.cluster["server"]), os.environ)
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise BadKubeconfig(f"only proxies of http:// and https:// are known, not {proxy!r}")
    return proxy


def reason(bad: BaseException) -> str:
    """The innermost reason, without the libraries' wrapping of it."""
    while (inner := getattr(bad, "reason", None)) is not None and isinstance(inner, BaseException):
        bad = inner
    text = str(bad)
    return text.partition(">: ")[2] or text or type(bad).__name__
