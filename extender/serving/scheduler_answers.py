"""kube-scheduler's calls: each is answered, and then done what is left of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus

from extender.scheduler.calls import SchedulerCall
from extender.serving import limits
from extender.serving.connection import Connection
from extender.serving.http_service import Answers
from extender.serving.requests import HttpRequest, of_json, refusal

ELSEWHERE = "kube-scheduler's verbs alone are answered here; people and probes have ports of their own"


def scheduler_answers(calls: Callable[[], Mapping[str, SchedulerCall]]) -> Callable[[], Answers]:
    """calls: makes those of one connection, by verb."""
    return lambda: partial(_answer, calls())


def _answer(calls: Mapping[str, SchedulerCall], connection: Connection, request: HttpRequest) -> None:
    connection.socket.settimeout(limits.ANSWER_S)
    call = calls.get(request.target[1:].decode("latin-1"))
    if call is None or request.method != "POST":
        status = HTTPStatus.METHOD_NOT_ALLOWED if call is not None else HTTPStatus.NOT_FOUND
        why = "a verb is asked for by POST" if call is not None else ELSEWHERE
        connection.socket.sendall(refusal(status, why, last=request.last))
        return
    answer = call(request.body)
    connection.socket.sendall(of_json(answer.status, answer.body, last=request.last))
    if answer.after is not None:
        answer.after()
