"""The pod of `compare --node`: it is waited for, and deleted, whatever happens."""

from __future__ import annotations

import json
import signal
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import pytest

from numakin.compare.arms import ON_ONE_MACHINE
from numakin.compare.presentation import as_json
from numakin.compare.rounds import result
from numakin.kubectl.apiserver import Answer
from numakin.kubectl.commands import compare
from numakin.kubectl.errors import CommandError, Unanswered
from tests.numakin.compare.made_up import made_up


class Scripted:
    """An API server whose every answer about the pod is said beforehand: its phases, or Unanswered, and what deleting
    it comes to; the last one stays.
    """

    namespace = "default"
    cut_short = ""

    def __init__(self, *phases: str | Exception, delete: Sequence[int] = (200,)) -> None:
        self.phases, self.delete, self.made, self.deleted = [*phases], [*delete], {}, 0
        self.api = self

    def request(self, method: str, path: str, body: bytes = b"") -> Answer:
        if method == "POST":
            self.made = json.loads(body)
            return self.create()
        assert path == f"/api/v1/namespaces/default/pods/{self.made['metadata']['name']}"
        self.deleted += 1
        return Answer(self.delete.pop(0) if len(self.delete) > 1 else self.delete[0], b'{"message": "no right to it"}')

    def create(self) -> Answer:
        return Answer(201, b"{}")

    def object(self, _path: str) -> Any:
        phase = self.phases.pop(0) if len(self.phases) > 1 else self.phases[0]
        if isinstance(phase, Exception):
            raise phase
        if phase == "signal":
            signal.raise_signal(signal.SIGTERM)
        return {"status": {"phase": phase}}

    def get(self, _path: str) -> Answer:
        outcome = result(made_up(110.0), ON_ONE_MACHINE, self.cut_short)
        return Answer(200, json.dumps(as_json(outcome, {}), indent=2).encode())


def compared(api: Scripted, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(compare, "POLL_S", 0.0)
    parser = ArgumentParser()
    compare.add_options(parser)
    return compare.run(parser.parse_args(["--node", "n", "--image", "i"]), api)


MISSED = Unanswered("no answer from the API server")


def test_two_misses_in_a_row_cost_nothing(monkeypatch):
    api = Scripted("Running", MISSED, MISSED, "Running", MISSED, MISSED, "Succeeded")
    assert (compared(api, monkeypatch), api.deleted) == (0, 1)


def test_after_three_misses_it_is_given_up(monkeypatch):
    api = Scripted("Running", MISSED)
    with pytest.raises(Unanswered, match="no answer"):
        compared(api, monkeypatch)
    assert api.deleted == 1


def test_a_pod_that_nobody_deletes_ends_by_itself(monkeypatch):
    api = Scripted("Succeeded")
    compared(api, monkeypatch)
    assert api.made["spec"]["activeDeadlineSeconds"] == 12 * 4 * 5 * 2 + 300 + 60


def test_rounds_that_were_cut_short_are_bad_news(monkeypatch, capsys):
    api = Scripted("Failed")
    api.cut_short = "out of luck"
    assert compared(api, monkeypatch) == 1
    assert "ended early, by a failure after 8 complete rounds: out of luck" in capsys.readouterr().out


def test_a_signal_deletes_the_pod(monkeypatch):
    api = Scripted("signal")
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # not the tests' own end
    try:
        with pytest.raises(KeyboardInterrupt):
            compared(api, monkeypatch)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert api.deleted == 1


def test_a_pod_that_may_not_be_deleted_is_named_and_what_failed_is_told(monkeypatch, capsys):
    stuck = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    api = Scripted(delete=[403])
    monkeypatch.setattr(api, "object", lambda _: {"status": {"containerStatuses": [stuck]}})
    with pytest.raises(CommandError, match="no such image"):
        compared(api, monkeypatch)
    name = api.made["metadata"]["name"]
    assert f"pod default/{name} can't be deleted, and is left: no right to it" in capsys.readouterr().err


def interrupted() -> Answer:
    raise KeyboardInterrupt


@pytest.mark.parametrize("deletes", [[200], [404, 404, 200], [404]], ids=["there", "late", "never"])
def test_a_pod_is_looked_for_and_deleted_where_its_creation_was_interrupted(monkeypatch, capsys, deletes):
    """It may be there, come while it is deleted, or not come at all."""
    api = Scripted(delete=deletes)
    monkeypatch.setattr(api, "create", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compared(api, monkeypatch)
    assert (api.deleted, capsys.readouterr().err) == (1 if deletes == [200] else 3, "")


def test_a_pod_whose_creation_nobody_answered_may_be_left(monkeypatch, capsys):
    api = Scripted(delete=[503])
    monkeypatch.setattr(api, "create", lambda: Answer(504, b'{"message": "timed out"}'))
    with pytest.raises(Unanswered, match="timed out"):
        compared(api, monkeypatch)
    assert "can't be deleted, and may be left" in capsys.readouterr().err


def test_what_the_api_server_refused_is_not_deleted(monkeypatch):
    api = Scripted()
    monkeypatch.setattr(api, "create", lambda: Answer(403, b'{"message": "no right to create"}'))
    with pytest.raises(Unanswered, match="no right to create"):
        compared(api, monkeypatch)
    assert api.deleted == 0


def test_each_comparison_has_a_pod_of_its_own_name(monkeypatch):
    names = set()
    for _ in range(2):
        api = Scripted("Succeeded")
        compared(api, monkeypatch)
        names.add(api.made["metadata"]["name"])
    assert len(names) == 2


@pytest.mark.parametrize("reason", ["ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"])
def test_a_pod_that_does_not_start_is_not_waited_for(monkeypatch, reason):
    api = Scripted()
    stuck = {"state": {"waiting": {"reason": reason, "message": "it is so"}, "running": None}}
    monkeypatch.setattr(api, "object", lambda _: {"status": {"phase": "Pending", "containerStatuses": [stuck]}})
    with pytest.raises(CommandError, match=f"the pod can't start: {reason}: it is so"):
        compared(api, monkeypatch)


ENDED: dict[str, tuple[dict[str, Any], Answer, str]] = {
    "a node that does not take it has no log of it": (
        {"reason": "OutOfcpu", "message": "Pod was rejected: Node didn't have enough resource: cpu"},
        Answer(400, b'{"message": "container \\"compare\\" in pod is terminated"}'),
        "OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu",
    ),
    "an image without the program": (
        {"containerStatuses": [{"state": {"terminated": {"reason": "StartError", "message": "exec: not found"}}}]},
        Answer(200, b""),
        "StartError: exec: not found",
    ),
    "a program that says why": (
        {"containerStatuses": [{"state": {"terminated": {"reason": "Error", "exitCode": 1}}}]},
        Answer(200, b"redis-server is not there\n"),
        "redis-server is not there",
    ),
    "nobody says anything": ({}, Answer(200, b""), r"the pod ended without a word \(Failed\)"),
}


@pytest.mark.parametrize("case", ENDED)
def test_why_a_pod_ended_without_an_answer_is_told(monkeypatch, case):
    status, log, why = ENDED[case]
    api = Scripted()
    monkeypatch.setattr(api, "object", lambda _: {"status": {"phase": "Failed", **status}})
    monkeypatch.setattr(api, "get", lambda _: log)
    with pytest.raises(CommandError, match=f"^{why}$"):
        compared(api, monkeypatch)
