"""The ways to the extender: through the API server's service proxy with the user's rights, or straight to its URL."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

import urllib3

from numakin.kubectl.apiserver import AGENT, Answer, ApiServer, asked, reason
from numakin.kubectl.errors import CommandError, Unanswered, UsageError
from numakin.wire.verification import verifying

SERVICE = "numakin-extender"
PORT = "web"
"""The port's name in the Service."""

READ_S = 60.0
_NO_BACKEND = frozenset({502, 503, 504})


VIEWER, AUDIENCE = "numakin-viewer", "numakin"
VIEWER_HEADER = "X-Numakin-Token"

TOKEN_LASTS_S = 600
"""The shortest that the API server makes tokens for."""

TOKEN_RENEWED_S = TOKEN_LASTS_S / 2


class ViewerToken:
    """The token by which the extender knows that this user may read: of an account that stands for viewers. Asked for
    when it is needed, and again in time. namespace: where numakin is.

    The API server's proxy does not pass on who asks, and no user's own token is shown to the extender. So a user who
    may see the cluster is allowed to ask for tokens of this account, which are good for numakin alone.
    """

    def __init__(self, api: ApiServer, namespace: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{VIEWER}/token"
        self._headers: dict[str, str] = {}
        self._at: float | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Empty where there is no such account, or this user may not have its tokens: an extender may need none."""
        if self._at is None or time.monotonic() - self._at > TOKEN_RENEWED_S:
            self._ask()
        return self._headers

    def _ask(self) -> None:
        """Where the API server has too much to do (429, 500) it is asked again with the next question."""
        spec = {"audiences": [AUDIENCE], "expirationSeconds": TOKEN_LASTS_S}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = self._api.request("POST", self._path, body=json.dumps(body).encode())
        given = answer.status in (200, 201)
        if given or answer.status in (403, 404):
            self._headers = {VIEWER_HEADER: str(answer.json()["status"]["token"])} if given else {}
            self._at = time.monotonic()


class Extender(Protocol):
    """What answers for the extender."""

    def request(self, method: str, path: str, query: Mapping[str, str], body: bytes | None) -> Answer: ...


class Direct:
    """An extender at a URL. ca: a PEM file that its certificate must lead to; empty: the system's. token: a file with a
    token of the API server, for an extender that asks who reads.
    """

    def __init__(self, url: str, ca: str = "", token: str = "") -> None:
        parts = _split(url)
        self._url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        try:
            context = verifying(ca) if parts.scheme == "https" else None
        except OSError as bad:
            raise UsageError(f"--extender-ca {ca}: {bad.strerror or 'no certificate (PEM) in it'}") from bad
        try:
            self._token = Path(token).read_text().strip() if token else ""
        except (OSError, UnicodeDecodeError) as bad:
            raise UsageError(f"--extender-token {token}: {getattr(bad, 'strerror', None) or bad}") from bad
        self._pool = urllib3.PoolManager(ssl_context=context)

    def request(self, method: str, path: str, query: Mapping[str, str], body: bytes | None) -> Answer:
        url = self._url + path + (f"?{urlencode(query)}" if query else "")
        headers = {"User-Agent": AGENT} | ({"Content-Type": "application/json"} if body is not None else {})
        headers |= {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            return asked(self._pool, method, url, headers=headers, body=body, read_s=READ_S)
        except (urllib3.exceptions.HTTPError, OSError) as bad:
            raise Unanswered(f"no answer from the extender {self._url}: {reason(bad)}") from bad


class Proxied:
    """The extender's Service, through the API server. TLS or not is found by asking."""

    def __init__(self, api: ApiServer, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._schemes = ["https:", "http:"]
        self._token = ViewerToken(api, namespace)

    def request(self, method: str, path: str, query: Mapping[str, str], body: bytes | None) -> Answer:
        where = f"/api/v1/namespaces/{self._namespace}/services"
        for scheme in list(self._schemes):
            url = f"{where}/{scheme}{SERVICE}:{PORT}/proxy{path}"
            answer = self._api.request(method, url, query, body, self._token.headers)
            # The API server's own 500 or 503: no backend, or one of another protocol.
            if answer.status < 500 or _status(answer) is None:
                break
        self._check(answer)
        self._schemes = [scheme]
        return answer

    def _check(self, answer: Answer) -> None:
        """Unanswered when the API server answered in the extender's place."""
        status = _status(answer)
        if answer.status in _NO_BACKEND or (status is not None and answer.status >= 500):
            raise Unanswered(
                f"no replica of the extender answers behind service {self._namespace}/{SERVICE}: {answer.why}; "
                f"see kubectl -n {self._namespace} get pods"
            )
        if status is None:
            return
        if answer.status == 403:
            raise Unanswered(
                f"not allowed: {answer.why}; it takes get on services/proxy in namespace {self._namespace} "
                "(ClusterRole numakin-viewer has it)"
            )
        if answer.status == 401:
            raise Unanswered("the API server does not know this user: log in again, or choose another --context")
        if answer.status == 404:
            raise Unanswered(
                f"there is no service {self._namespace}/{SERVICE}: is numakin installed there? name its "
                "namespace by --numakin-namespace"
            )
        raise Unanswered(f"the API server answers {answer.status}: {answer.why}")


def get(extender: Extender, path: str, **query: str) -> Any:
    """The JSON at one of the extender's paths; CommandError with its own words when it has none."""
    return _decoded(extender.request("GET", path, query, None), path)


def listed(extender: Extender, path: str, rows: str) -> list[Any]:
    """All rows of a list. rows: what its answers call them."""
    return [row for answer in pages(extender, path) for row in answer[rows]]


def pages(extender: Extender, path: str) -> Iterator[Any]:
    """The answers that make up a list."""
    yield (answer := get(extender, path))
    while "continue" in answer:
        yield (answer := get(extender, path, **{"continue": answer["continue"]}))


def post(extender: Extender, path: str, body: object) -> Any:
    """The JSON that a question with a body is answered by. UsageError when the body can't be sent as JSON."""
    try:
        text = json.dumps(body)
    except (TypeError, ValueError, RecursionError) as bad:
        raise UsageError(f"this can't be sent as JSON: {bad}") from bad
    return _decoded(extender.request("POST", path, {}, text.encode()), path)


def _decoded(answer: Answer, path: str) -> Any:
    if answer.status == 404 and not _worded(answer):
        raise Unanswered(f"the extender does not know {path}: it is older than this program")
    if answer.status >= 500:
        raise Unanswered(f"the extender answers {answer.status}: {answer.why}")
    if answer.status in (401, 403):
        raise Unanswered(f"the extender does not let this user read: {answer.why}; see ClusterRole numakin-viewer")
    if answer.status >= 400:
        raise CommandError(answer.why)
    return answer.json()


def _worded(answer: Answer) -> bool:
    """Whether the extender says of something that it is not there, and not of the path."""
    return b'"error"' in answer.body and b"URL" not in answer.body


def _status(answer: Answer) -> dict[str, Any] | None:
    """The API server's own refusal; None when the answer is the extender's."""
    if answer.status < 400:
        return None
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) and body.get("kind") == "Status" else None


def _split(url: str) -> Any:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise UsageError(f"--extender must be http://HOST:PORT or https://HOST:PORT, not {url!r}")
    return parts
