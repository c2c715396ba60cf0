"""Evictions, by the one way that PodDisruptionBudgets rule: the pods/eviction subresource."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

from extender.kube.api import Api, ApiError, Unreachable


class Answered(StrEnum):
    """accepted: the pod is being deleted. refused: a budget, or the API server's own limit, does not allow it now.
    denied: this account may not evict. failed: no answer, the pod is no more, or another one has its name: the watch
    tells.
    """

    ACCEPTED = "accepted"
    REFUSED = "refused"
    DENIED = "denied"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class EvictionAnswer:
    """why: in the API server's words. retry_after_s: how long it asks to be left alone, 0: it does not say."""

    answered: Answered
    why: str = ""
    retry_after_s: float = 0.0


_BY_CODE = {int(HTTPStatus.TOO_MANY_REQUESTS): Answered.REFUSED, int(HTTPStatus.FORBIDDEN): Answered.DENIED}


class Evictions:
    """Asks in the version that the API server serves: policy/v1 since 1.22, policy/v1beta1 before 1.25."""

    def __init__(self, api: Api) -> None:
        self._api, self._version = api, ""

    def ask(self, namespace: str, pod: str, uid: str) -> EvictionAnswer:
        """For this very pod: another one of its name is left alone. Asking twice evicts once."""
        try:
            body = {
                "apiVersion": self._served(),
                "kind": "Eviction",
                "metadata": {"name": pod, "namespace": namespace},
                "deleteOptions": {"preconditions": {"uid": uid}},
            }
            self._api.request("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", body=body)
        except ApiError as refused:
            answered = _BY_CODE.get(refused.code, Answered.FAILED)
            return EvictionAnswer(answered, str(refused), refused.retry_after_s)
        except Unreachable as bad:
            return EvictionAnswer(Answered.FAILED, str(bad))
        return EvictionAnswer(Answered.ACCEPTED)

    def _served(self) -> str:
        """Unreachable where there is no such subresource."""
        if not self._version:
            resources = self._api.get("/api/v1").json().get("resources") or ()
            served = [each for each in resources if each.get("name") == "pods/eviction"]
            if not served:
                raise Unreachable("the API server does not serve pods/eviction")
            self._version = f"{served[0].get('group', 'policy')}/{served[0].get('version', 'v1')}"
        return self._version
