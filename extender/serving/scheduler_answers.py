"""kube-scheduler's calls: each is answered, and then done what is left of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus

from extender.scheduler.calls import SchedulerCall
from extender.serving import limits
from extender.serving.connection import Connection
from extender.serving.http_service import Answers
from extender.serving.refusals import NowAndThen
from extender.serving.requests import HttpRequest, of_json, refusal
from numakin.process.log import Log

ELSEWHERE = "kube-scheduler's verbs alone are answered here; people and probes have ports of their own"

SHOWN = 100
"""Characters of what was asked for that are logged."""

_log = Log("scheduler")


def scheduler_answers(calls: Callable[[], Mapping[str, SchedulerCall]]) -> Callable[[], Answers]:
    """calls: makes those of one connection, by verb."""
    logged = NowAndThen()
    return lambda: partial(_answer, calls(), logged)


def _answer(
    calls: Mapping[str, SchedulerCall], logged: NowAndThen, connection: Connection, request: HttpRequest
) -> None:
    connection.socket.settimeout(limits.ANSWER_S)
    call = calls.get(request.target[1:].decode("latin-1"))
    if call is None or request.method != "POST":
        status = HTTPStatus.METHOD_NOT_ALLOWED if call is not None else HTTPStatus.NOT_FOUND
        why = "a verb is asked for by POST" if call is not None else ELSEWHERE
        if logged.due():
            _log_stray(calls, connection, request, status)
        connection.socket.sendall(refusal(status, why, last=request.last))
        return
    answer = call(request.body)
    connection.socket.sendall(of_json(answer.status, answer.body, last=request.last))
    if answer.after is not None:
        answer.after()


def _log_stray(
    calls: Mapping[str, SchedulerCall], connection: Connection, request: HttpRequest, status: HTTPStatus
) -> None:
    """kube-scheduler's own log has no word of it unless it runs with --v=5."""
    asked = f"{request.method} {request.target[:SHOWN].decode('latin-1')}"
    verbs = ", ".join(f"/{verb}" for verb in calls)
    why = f"answered are POST {verbs}; where kube-scheduler asks, see its extender's urlPrefix and verbs"
    _log.warning("nothing to answer", asked=asked, status=status.value, peer=connection.peer, why=why)
