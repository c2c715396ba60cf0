"""One API server: requests with the `kubernetes` package's configuration, TLS and authentication, bodies as bytes.

The package's typed models are passed by: for a list of 1,000 pods they take 170 times as long as decoding the few
fields needed, and some of its calls fail on answers that are right (a Binding's, a Lease's time of a whole second).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urlencode

import urllib3

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 30.0
LONGEST_RETRY_AFTER_S = 300.0
SHOWN = 100
"""Bytes of an answer that a message shows."""
LONGEST_MESSAGE = 500
"""Characters of an error's message that are kept: some hold the whole object."""


_PATH = re.compile(r"(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._:~-]+)+")
"""Paths whose segments need no escape: no name in one leads elsewhere."""


class ApiError(Exception):
    """The API server refused. `code` is HTTP's, `reason` the Status' own reason (empty when it sent none).

    retry_after_s: how long it asks to be left alone, 0 when it does not say.
    """

    def __init__(self, code: int, reason: str, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(f"{code} {reason}: {message[:LONGEST_MESSAGE]}")
        self.code = code
        self.reason = reason
        self.retry_after_s = retry_after_s

    @property
    def passing(self) -> bool:
        """Whether the API server has too much to do, or a fault of its own: the same may be granted later."""
        return self.code == HTTPStatus.TOO_MANY_REQUESTS or self.code >= 500


class Unreachable(Exception):
    """No answer of an API server: the connection was refused, broken, or silent for too long, what came is no object,
    or the credentials to ask with can't be read. The rest as of `ApiError`.
    """

    passing, retry_after_s = True, 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A request that was granted."""

    code: int
    body: bytes
    asked: str

    def json(self) -> dict[str, Any]:
        """Unreachable when it is no JSON object: a proxy before the API server may answer in its place."""
        try:
            decoded = json.loads(self.body)
        except (ValueError, RecursionError):
            decoded = None
        if not isinstance(decoded, dict):
            raise Unreachable(f"{self.asked}: the answer is no JSON object: {self.body[:SHOWN]!r}")
        return decoded


class Client(Protocol):
    """The part of `kubernetes.client.ApiClient` that is used."""

    configuration: Any
    rest_client: Any

    def update_params_for_auth(self, headers: Any, queries: Any, auth_settings: Any, *request: Any) -> None: ...


class Api:
    """Thread-safe, as urllib3's pools are. bad_login: what the client raises where it has no credentials any more."""

    def __init__(self, client: Client, bad_login: type[Exception] = OSError) -> None:
        self._client = client
        self._bad_login = bad_login
        self._host = client.configuration.host

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        return self.request("GET", path, query)

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = JSON,
    ) -> Answer:
        """ApiError when refused, Unreachable when there is no answer."""
        with self._opened(method, path, query, body=body, content_type=content_type) as response:
            return Answer(response.status, response.read(), f"{method} {path}")

    def apply(self, path: str, body: Mapping[str, Any], *, manager: str, force: bool = True) -> Answer:
        """Server-side apply: what is left out of `body` and was applied by this manager before is removed."""
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        return self.request("PATCH", path, query, body, APPLY_PATCH)

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str], read_timeout_s: float) -> Iterator[urllib3.BaseHTTPResponse]:
        """An answer to be read as it comes. Errors while reading are Unreachable too."""
        with self._opened("GET", path, query, read_timeout_s=read_timeout_s) as response:
            yield response

    @contextmanager
    def _opened(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        *,
        body: Mapping[str, Any] | None = None,
        content_type: str = JSON,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        if not _PATH.fullmatch(path):
            raise Unreachable(f"{method} {path[:200]!a}: not asked: no path of an API server")
        headers = {"Accept": JSON, "User-Agent": "numakin-extender"}
        if body is not None:
            headers["Content-Type"] = content_type
        url = self._host + path + (f"?{urlencode(query)}" if query else "")
        response = None
        try:
            # Reads the token anew when it is due, as projected tokens need.
            self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, None)
            response = self._client.rest_client.pool_manager.request(
                method,
                url,
                headers=headers,
                body=None if body is None else json.dumps(body).encode(),
                timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=read_timeout_s),
                retries=False,
                preload_content=False,
            )
            if response.status >= 400:
                raise _refusal(response)
            yield response
        except (urllib3.exceptions.HTTPError, self._bad_login, OSError) as bad:
            raise Unreachable(f"{method} {path}: {bad}") from bad
        finally:
            if response is not None:
                _give_back(response)


def _give_back(response: urllib3.BaseHTTPResponse) -> None:
    """To the pool when it was read to the end; else its connection is of no more use."""
    if response.closed:
        response.release_conn()
    else:
        response.close()


def _refusal(response: urllib3.BaseHTTPResponse) -> ApiError:
    text = response.read()
    retry_after = response.headers.get("Retry-After", "")
    retry_after_s = min(LONGEST_RETRY_AFTER_S, float(retry_after)) if retry_after.isdecimal() else 0.0
    try:
        status = json.loads(text)
        reason, message = status.get("reason") or "", status.get("message") or ""
        return ApiError(response.status, str(reason), str(message), retry_after_s)
    except (ValueError, AttributeError, RecursionError):
        return ApiError(response.status, "", text.decode(errors="replace").strip(), retry_after_s)
