"""The token by which the extender knows that this user may read: of an account that stands for viewers.

The API server's proxy does not pass on who asks, and nobody's own token is shown to the extender. So whoever may see
the cluster is allowed to ask for tokens of this account, which are good for numakin alone.
"""

from __future__ import annotations

import json
import time

from numakin.kubectl.apiserver import ApiServer

ACCOUNT, AUDIENCE = "numakin-viewer", "numakin"
HEADER = "X-Numakin-Token"

LASTS_S = 600
"""The shortest that the API server makes tokens for."""

RENEWED_S = LASTS_S / 2


class ViewerToken:
    """Asked for when it is needed, and again in time. namespace: where numakin is."""

    def __init__(self, api: ApiServer, namespace: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{ACCOUNT}/token"
        self._headers: dict[str, str] = {}
        self._at: float | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Empty where there is no such account, or this user may not have its tokens: an extender may need none."""
        if self._at is None or time.monotonic() - self._at > RENEWED_S:
            self._at = time.monotonic()
            self._headers = self._asked()
        return self._headers

    def _asked(self) -> dict[str, str]:
        spec = {"audiences": [AUDIENCE], "expirationSeconds": LASTS_S}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = self._api.request("POST", self._path, body=json.dumps(body).encode())
        return {HEADER: str(answer.json()["status"]["token"])} if answer.status in (200, 201) else {}
