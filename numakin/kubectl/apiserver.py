"""The API server as the user's kubeconfig names it, and requests to it with the user's credentials."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

from extender.kube.kubeconfig import BadKubeconfig, check_loaded, overheard, user_of
from numakin.kubectl.errors import Unanswered, UsageError

CONNECT_S = 5.0
READ_S = 30.0
LARGEST_ANSWER = 256 << 20
"""Bytes. The nodes of a cluster of 5,000 are some 20 MB."""

_FORBIDDEN = 403


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


class ApiServer:
    """One API server with one user's credentials. namespace: the context's own."""

    def __init__(self, configuration: Any, namespace: str) -> None:
        from kubernetes import client  # noqa: PLC0415 - half a second, and --extender does without

        self.client = client.ApiClient(configuration)
        self.namespace = namespace
        self._host = str(configuration.host).rstrip("/")

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

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        more_headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Unanswered when there is no answer at all."""
        headers = {"Accept": "application/json", "User-Agent": "kubectl-numakin", **(more_headers or {})}
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        url = self._host + path + (f"?{urlencode(query)}" if query else "")
        try:
            self.client.update_params_for_auth(headers, [], ["BearerToken"], path, method, None)
            response = self.client.rest_client.pool_manager.request(
                method,
                url,
                headers=headers,
                body=body,
                timeout=urllib3.Timeout(connect=CONNECT_S, read=READ_S),
                retries=False,
                preload_content=False,
            )
            content = response.read(LARGEST_ANSWER)
            response.release_conn()
        except (urllib3.exceptions.HTTPError, OSError) as bad:
            raise Unanswered(f"no answer from the API server {self._host}: {_reason(bad)}") from bad
        return Answer(response.status, content)


def connect(kubeconfig: str, context: str) -> ApiServer:
    """The API server of a kubeconfig's context. kubeconfig: empty as kubectl has it, $KUBECONFIG or ~/.kube/config.

    UsageError when there is none, or it can't be used.
    """
    import yaml  # noqa: PLC0415
    from kubernetes import client, config  # noqa: PLC0415

    configuration: Any = client.Configuration()
    named = kubeconfig or os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    paths = [path for path in named.split(os.pathsep) if path]
    present = [path for path in paths if Path(path).exists()]
    if not present:
        raise UsageError(
            f"no kubeconfig at {' or '.join(paths) or named}: name one by --kubeconfig or $KUBECONFIG, or "
            "an extender by --extender http://HOST:PORT"
        )
    user: Mapping[str, Any] = {}
    messages: list[str] = []
    unusable = (config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError, KeyError)
    try:
        if len(present) == 1 and not context:
            user = user_of(present[0])
        joined = os.pathsep.join(present)
        with overheard() as messages:
            contexts, active = config.list_kube_config_contexts(config_file=joined)  # type: ignore[no-untyped-call]
            config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=joined, context=context or None, client_configuration=configuration
            )
        check_loaded(configuration, user, messages)
    except BadKubeconfig as bad:
        raise UsageError(f"kubeconfig {named}: {bad}") from bad
    except unusable as bad:
        raise UsageError(f"kubeconfig {named}: {' '.join(str(bad).split())}") from bad
    chosen = next((row for row in contexts if row["name"] == context), None) if context else active
    return ApiServer(configuration, str(((chosen or {}).get("context") or {}).get("namespace") or "default"))


def _reason(bad: BaseException) -> str:
    """The innermost reason, without the libraries' wrapping of it."""
    while (inner := getattr(bad, "reason", None)) is not None and isinstance(inner, BaseException):
        bad = inner
    text = str(bad)
    return text.partition(">: ")[2] or text or type(bad).__name__
