"""Carrying out, once and with the user's own rights, the plan by which a group comes together again.

As the extender does it by itself: each step is written on the group's AffinityGroup object first, so that the
extenders hold the room; only then the eviction is asked for, by the Eviction API, so that PodDisruptionBudgets rule;
and what came of it is what the extender that leads writes there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from numakin.kubectl.apiserver import Answer, ApiServer
from numakin.kubectl.errors import CommandError, Unanswered
from numakin.kubectl.reach import Extender, get

ANNOTATION = "numakin.io/regroup"
"""As the extender reads it."""

NAMED = "numakin.io/group"
"""The annotation with a group's name where that can't be an object's."""

BY = "kubectl-numakin"
MANAGER = "numakin"
"""The extender's own field manager: an object of its own stays one."""

HELD_S = 15.0
"""How long the extenders may take to hold the room."""

SETTLE_S = 2.0
"""For other replicas than the one that has answered."""

ASKED_FOR_S = 60.0
AGAIN_S = 5.0
"""How long an eviction that a budget does not allow is asked for, and the first wait, doubled each time."""

GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
"""What the API server answers of a pod that is no more, or whose name another one has by now."""

OVER_S = 420.0
"""How long a step may take: the extender gives its room back after 300 s."""

PLANNED_S = 60.0
"""How long the next plan may take after a step: it is made once the node's enforcer has reported the pod."""

READY_S = 300.0
"""How long until a step of it may be begun: once who came in the place of the pod before is ready."""

LOOK_S = 1.0

PATIENT_WITH = 3
"""Looks in a row that may go unanswered after an eviction."""


@dataclass(frozen=True, slots=True)
class Evicting:
    """say: what happens, to the person who waits. sleep, clock: seconds."""

    api: ApiServer
    extender: Extender
    group: str
    say: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def carry_out(self) -> list[dict[str, Any]]:
        """What came of each step, until the group has no plan any more, or one did not help. CommandError where
        nothing can be done.
        """
        first = searched(self.extender, self.group)
        most, rows = len(first["evictions"]["steps"]), list[dict[str, Any]]()
        if not most:
            why = next((row["why"] for row in first["groups"]), "it is not cut over nodes, or has no pods")
            raise CommandError(f"nothing to evict of {self.group}: {why}")
        version, path = self._served(), self._object()
        for answer in self._plans(most):
            step = self._chosen(answer, first=not rows)
            if step is None:
                break
            outcome = self._step(path, step, version)
            rows.append({"pod": step["pod"], "node": step["node"], "numa_node": step["numa_node"], **outcome})
            if not outcome["done"]:
                break
        return rows

    def _plans(self, most: int) -> Iterator[dict[str, Any]]:
        """As they are made, one for each step, as many as the first one had."""
        for number in range(most):
            answer = self._next() if number else self._asked()
            if not answer["evictions"]["steps"]:
                return
            yield answer

    def _next(self) -> dict[str, Any]:
        """The plan after a step, once it may be gone on with, or that has taken too long."""
        since, said = self.clock(), ""
        while not _possible(steps := (answer := self._patiently(self._asked))["evictions"]["steps"]):
            if self.clock() - since >= (READY_S if steps else PLANNED_S):
                break
            if steps and (why := steps[0]["obstacle"]) != said:
                self.say(f"waiting: {why}")
                said = why
            self.sleep(LOOK_S)
        return answer

    def _chosen(self, answer: dict[str, Any], *, first: bool) -> dict[str, Any] | None:
        """The first step that may be begun. CommandError where there is none, of the first plan."""
        steps = answer["evictions"]["steps"]
        for each in steps:
            if not each["obstacle"]:
                chosen: dict[str, Any] = each["step"]
                return chosen
            self.say(f"pod {each['step']['pod']} is left where it is: {each['obstacle']}")
        if first:
            raise CommandError(f"no pod of {self.group} may be evicted now")
        return None

    def _asked(self) -> dict[str, Any]:
        answer: dict[str, Any] = get(self.extender, "/api/v1/regroup", group=self.group)
        return answer

    def _patiently(self, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What it returns, though it may go unanswered before: a pod was evicted, and minutes are waited."""
        for _ in range(PATIENT_WITH - 1):
            try:
                return ask()
            except Unanswered as none:
                self.say(f"{none}; again in {AGAIN_S:.0f} s")
                self.sleep(AGAIN_S)
        return ask()

    def _object(self) -> str:
        """The path of the group's AffinityGroup object. CommandError where there is none."""
        namespace, _, group = self.group.partition("/")
        path = f"/apis/numakin.io/v1alpha1/namespaces/{namespace}/affinitygroups"
        for each in self.api.listed(path):
            name = each["metadata"]["name"]
            if (each["metadata"].get("annotations") or {}).get(NAMED, name) == group:
                return f"{path}/{name}"
        raise CommandError(
            f"there is no AffinityGroup object of {self.group}, on which the extenders read what to hold"
        )

    def _step(self, path: str, step: dict[str, Any], version: str) -> dict[str, Any]:
        namespace = self.group.partition("/")[0]
        self._write(path, step)
        place = f"NUMA node {step['numa_node']} of {step['node']}"
        try:
            self._wait_for_room(step, place)
            self.say(f"evicting pod {step['pod']}; room for the one in its place is held on {place}")
            why = self._evict(namespace, step, version)
        except (CommandError, KeyboardInterrupt):
            self._write(path, None)
            raise
        if why:
            self._write(path, None)
            return {"done": False, "text": f"not evicted: {why}"}
        return self._outcome(path, step)

    def _write(self, path: str, step: dict[str, Any] | None) -> None:
        """The step under way, or none any more. CommandError where another one is."""
        there = self.api.object(path)
        record = _record(there)
        if step is not None and record.get("step"):
            raise CommandError(f"another step of {self.group} is under way: pod {record['step'].get('pod')}")
        record["step"] = {**step, "by": BY} if step is not None else None
        if step is not None:
            record |= {"halted": "", "missed": 0, "until": 0, "left": 0, "before": None}
        metadata = {
            "resourceVersion": there["metadata"]["resourceVersion"],
            "uid": there["metadata"]["uid"],
            "annotations": {ANNOTATION: json.dumps(record)},
        }
        body = json.dumps({"metadata": metadata}).encode()
        headers = {"Content-Type": "application/merge-patch+json"}
        answer = self.api.request("PATCH", path, {"fieldManager": MANAGER}, body, headers)
        if answer.status == HTTPStatus.CONFLICT:
            self._write(path, step)
        elif answer.status >= HTTPStatus.BAD_REQUEST:
            raise CommandError(f"the step is not written on the group's object: {answer.why}")

    def _wait_for_room(self, step: dict[str, Any], place: str) -> None:
        until = self.clock() + HELD_S
        while self._asked()["evictions"]["held_in_place_of"] != step["uid"]:
            if self.clock() >= until:
                raise CommandError(f"no room is held on {place}: nothing was evicted")
            self.sleep(LOOK_S)
        self.sleep(SETTLE_S)

    def _evict(self, namespace: str, step: dict[str, Any], version: str) -> str:
        """Why not; empty: it was. Where an answer was lost, a pod that is gone was evicted."""
        path = f"/api/v1/namespaces/{namespace}/pods/{step['pod']}/eviction"
        body = json.dumps(
            {
                "apiVersion": version,
                "kind": "Eviction",
                "metadata": {"name": step["pod"], "namespace": namespace},
                "deleteOptions": {"preconditions": {"uid": step["uid"]}},
            }
        ).encode()
        until, wait_s, lost = self.clock() + ASKED_FOR_S, AGAIN_S, False
        while True:
            late = self.clock() + wait_s > until
            try:
                answer = self.api.request("POST", path, None, body)
            except Unanswered as none:
                if late:
                    raise
                lost, why = True, str(none)
            else:
                if answer.status < HTTPStatus.BAD_REQUEST or (lost and answer.status in GONE):
                    return ""
                why = _because(answer)
                if answer.status != HTTPStatus.TOO_MANY_REQUESTS or late:
                    return why
            self.say(f"not yet: {why}; again in {wait_s:.0f} s")
            self.sleep(wait_s)
            wait_s *= 2

    def _outcome(self, path: str, step: dict[str, Any]) -> dict[str, Any]:
        """As the extender that leads has it."""
        until = self.clock() + OVER_S
        while self.clock() < until:
            record = _record(self._patiently(partial(self.api.object, path)))
            if (record.get("step") or {}).get("uid") != step["uid"]:
                done = not (record.get("missed") or record.get("until"))
                return {"done": done, "text": record.get("last") or "over"}
            self.sleep(LOOK_S)
        raise Unanswered(
            "no extender has said what came of it: the replica that leads does not answer, or there is none"
        )

    def _served(self) -> str:
        resources = self.api.object("/api/v1").get("resources") or ()
        served = [each for each in resources if each.get("name") == "pods/eviction"]
        if not served:
            raise CommandError("the API server does not serve pods/eviction")
        return f"{served[0].get('group', 'policy')}/{served[0].get('version', 'v1')}"


def searched(extender: Extender, group: str) -> dict[str, Any]:
    """What a search has found of this group; empty: of all. Unanswered where there was none, which says nothing of
    whether a group is cut.
    """
    answer: dict[str, Any] = get(extender, "/api/v1/regroup", **({"group": group} if group else {}))
    if answer["searched_seconds_ago"] is None:
        raise Unanswered(
            "the extender that answered has not searched for groups that are cut: ask again in some seconds; with "
            "--regroup-period=0 it never does"
        )
    return answer


def _possible(steps: list[dict[str, Any]]) -> bool:
    """Whether one of them may be begun."""
    return any(not each["obstacle"] for each in steps)


def _record(there: dict[str, Any]) -> dict[str, Any]:
    """What is no record counts as none, as for the extender."""
    try:
        record = json.loads((there["metadata"].get("annotations") or {}).get(ANNOTATION) or "{}")
    except (ValueError, RecursionError):
        record = {}
    return record if isinstance(record, dict) and isinstance(record.get("step") or {}, dict) else {}


def _because(answer: Answer) -> str:
    """With the budget's own words, where a PodDisruptionBudget has some."""
    try:
        causes = (answer.json().get("details") or {}).get("causes") or ()
    except (Unanswered, AttributeError):
        causes = ()
    words = "; ".join(str(cause.get("message")) for cause in causes)
    return f"{answer.why} {words}".strip()
