"""A Deployment in the cluster: changed, rolled out and restored with the user's rights."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from numakin.kubectl.apiserver import ApiServer
from numakin.kubectl.comparing import templates
from numakin.kubectl.errors import CommandError, Unanswered

POLL_S = 0.5

MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}

PATIENT_WITH = 3
"""Polls in a row that may go unanswered while a rollout is awaited."""

ENDED = ("Succeeded", "Failed")
"""Phases of pods that run no more."""


class Taken(CommandError):
    """Another comparison's, which alone may undo what it has done."""


class Changed(Unanswered):
    """It is not any more what it was when it was read."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """One that is compared. timeout_s: of one rollout."""

    api: ApiServer
    namespace: str
    name: str
    timeout_s: float

    def __str__(self) -> str:
        return f"deployment/{self.name}"

    def read(self) -> dict[str, Any]:
        """Unanswered where it is not there, or may not be read."""
        return dict(self.api.object(self._path))

    def check(self) -> dict[str, Any]:
        """The Deployment; CommandError where it can't be compared."""
        deployment = self.read()
        spec = deployment["spec"]
        self._must_be_free(deployment)
        if spec.get("paused"):
            raise CommandError(f"{self} is paused: its pods would never be replaced")
        if not spec.get("replicas"):
            raise CommandError(f"{self} has no replicas")
        if self._ready(deployment, None) is None:
            raise CommandError(f"{self} is not rolled out: see kubectl rollout status {self}")
        if not self._may_delete_revisions():
            raise Unanswered(f"restoring {self} takes the right to delete ReplicaSets in namespace {self.namespace}")
        return deployment

    def begin(self) -> None:
        """Taken where another comparison has begun with it since it was checked: it remembers how it was."""
        deployment = self.read()
        self._must_be_free(deployment)
        patch = templates.begun(deployment)
        patch["metadata"]["resourceVersion"] = deployment["metadata"]["resourceVersion"]
        try:
            self._patch(patch)
        except Changed:
            self.begin()

    def change(self, way: str, group: str) -> None:
        """Returns at once; see `rolled_out`."""
        self._patch(templates.changed(self.read(), way, group))

    def rolled_out(self, way: str | None) -> list[dict[str, Any]]:
        """Waits until all its pods run this way and no others are left, and returns them. CommandError when the rollout
        fails, takes too long, or another client has changed the Deployment.
        """
        deadline, failed = time.monotonic() + self.timeout_s, 0
        while True:
            try:
                deployment, failed = self.read(), 0
                if (pods := self._ready(deployment, way)) is not None:
                    return pods
            except Unanswered:
                failed += 1
                if failed >= PATIENT_WITH:
                    raise
            if time.monotonic() > deadline:
                raise CommandError(
                    f"{self} was not rolled out within {self.timeout_s:.0f} s; see kubectl describe {self}"
                )
            time.sleep(POLL_S)

    def must_run(self, way: str | None, deployment: dict[str, Any] | None = None) -> None:
        """CommandError when another client has changed it. deployment: as it was read; None: it is read anew."""
        deployment = deployment or self.read()
        if templates.way_of(deployment) != way:
            raise CommandError(f"somebody else has changed {self}: what manages it (GitOps?) has to pause meanwhile")
        if way is not None and templates.is_scaled(deployment):
            replicas = deployment["spec"].get("replicas")
            why = "what scales it (an autoscaler?) has to pause meanwhile"
            raise CommandError(f"somebody else has scaled {self} to {replicas} replicas: {why}")

    def disturbed(self, pods: Iterable[dict[str, Any]]) -> int:
        """How many of its pods, as `rolled_out` gave them, have restarted since or are gone."""
        now = {pod["metadata"]["uid"]: _restarts(pod) for pod in self._pods(self.read())}
        return sum(now.get(pod["metadata"]["uid"]) != _restarts(pod) for pod in pods)

    def put_back(self) -> None:
        """Its pods as they were before `begin`; returns at once. Nothing where no comparison has begun."""
        deployment = self.read()
        if templates.is_compared(deployment):
            self._patch(templates.restored(deployment))

    def clean(self) -> None:
        """Waits until its pods are as they were, and removes all else that the comparison has made."""
        deployment = self.read()
        if not templates.is_compared(deployment):
            return
        self.rolled_out(None)
        made = [each for each in self._revisions(deployment["metadata"]["uid"]) if templates.way_of(each) is not None]
        for revision in made:
            self._asked("DELETE", f"{self._folder('apps/v1', 'replicasets')}/{revision['metadata']['name']}", None)
        self._patch(templates.ended(deployment))

    def _must_be_free(self, deployment: dict[str, Any]) -> None:
        if templates.is_compared(deployment):
            raise Taken(
                f"another comparison of {self} runs, or has not restored it: if none does, run compare {self} "
                "--restore first"
            )

    def _ready(self, deployment: dict[str, Any], way: str | None) -> list[dict[str, Any]] | None:
        """Its pods; None while the rollout goes on."""
        self.must_run(way, deployment)
        status, replicas = deployment.get("status") or {}, deployment["spec"]["replicas"]
        counts = [status.get(kind, 0) for kind in ("replicas", "updatedReplicas", "availableReplicas")]
        if status.get("observedGeneration", 0) < deployment["metadata"]["generation"]:
            return None
        for condition in status.get("conditions") or ():
            if condition["type"] == "Progressing" and condition["reason"] == "ProgressDeadlineExceeded":
                raise CommandError(f"{self} can't be rolled out: {condition.get('message', '')}")
        if counts != [replicas] * 3:
            return None
        pods = self._pods(deployment)
        return pods if len(pods) == replicas else None

    def _pods(self, deployment: dict[str, Any]) -> list[dict[str, Any]]:
        """Its own that have not ended: others may have its labels, and evicted ones stay as objects."""
        query = {"labelSelector": templates.selector_of(deployment)}
        revisions = {each["metadata"]["uid"] for each in self._revisions(deployment["metadata"]["uid"])}
        pods = self.api.object(self._folder("v1", "pods"), query)["items"]
        return [
            pod
            for pod in pods
            if (pod.get("status") or {}).get("phase") not in ENDED and not revisions.isdisjoint(_owners(pod))
        ]

    def _may_delete_revisions(self) -> bool:
        right = {"namespace": self.namespace, "verb": "delete", "group": "apps", "resource": "replicasets"}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": right},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = self.api.request("POST", path, body=json.dumps(review).encode())
        return answer.status < 400 and bool(answer.json()["status"]["allowed"])

    def _revisions(self, owner: str) -> list[dict[str, Any]]:
        """Its ReplicaSets."""
        return [
            each for each in self.api.object(self._folder("apps/v1", "replicasets"))["items"] if owner in _owners(each)
        ]

    def _patch(self, patch: dict[str, Any]) -> None:
        self._asked("PATCH", self._path, json.dumps(patch).encode())

    def _asked(self, method: str, path: str, body: bytes | None) -> None:
        answer = self.api.request(method, path, body=body, more_headers=MERGE_PATCH if body else None)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            refused = Changed if answer.status == HTTPStatus.CONFLICT else Unanswered
            raise refused(f"{self} can't be changed: {answer.why}")

    @property
    def _path(self) -> str:
        return f"{self._folder('apps/v1', 'deployments')}/{self.name}"

    def _folder(self, group: str, kind: str) -> str:
        root = "/api" if group == "v1" else "/apis"
        return f"{root}/{group}/namespaces/{self.namespace}/{kind}"


def _restarts(pod: dict[str, Any]) -> int:
    """Of all its containers."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return sum(status.get("restartCount", 0) for status in statuses)


def _owners(item: dict[str, Any]) -> list[str]:
    """By uid."""
    return [reference["uid"] for reference in item["metadata"].get("ownerReferences") or ()]
