"""Requests about containers that have not opted in: answered at once, handled when there is time."""

import pytest

from enforcer.nri import session, ttrpc
from enforcer.nri.errors import (
    PeerError,
)
from enforcer.nri.handlers import Handlers
from lab.standins.runtime import framing
from numakin.wire import nri_pb2 as nri
from numakin.wire import ttrpc_pb2
from tests.enforcer.nri.peer import OTHER, PLUGIN_SERVICE, POD, Talk, raises, request
from tests.enforcer.nri.recording import answers_in


class TestWhatConcernsNobody:
    """A CreateContainer that can be about no member is answered before it is decoded, and handled afterwards."""

    @staticmethod
    def talk(called: list[str], **more) -> Talk:
        def created(_pod, container):
            called.append(container.id)
            return None, []

        return Talk(
            Handlers(
                create_container=created,
                stop_container=lambda _pod, container: called.append(f"stop {container.id}") or [],
                concerns=lambda request: b"opted in" in request,
                **more,
            )
        )

    @staticmethod
    def create(talk: Talk, container: str, label: str = "") -> nri.CreateContainerResponse:
        about = nri.Container(id=container, labels={"app": label})
        answer = talk.ask("CreateContainer", nri.CreateContainerRequest(pod=POD, container=about))
        assert not answer.status.code
        return nri.CreateContainerResponse.FromString(answer.payload)

    def test_it_is_answered_with_nothing_and_handled_when_there_is_time(self):
        called = []
        talk = self.talk(called)
        assert self.create(talk, "a") == nri.CreateContainerResponse()
        assert (called, talk.session.behind) == ([], True)
        talk.session.catch_up()
        assert (called, talk.session.behind) == (["a"], False)
        assert talk.stats.requests["CreateContainer"] == 1

    def test_what_it_changes_for_others_is_left_over_for_another_message(self):
        late = []
        talk = Talk(
            Handlers(
                create_container=lambda _pod, _container: (None, [OTHER]),
                concerns=lambda _request: False,
                left_over=lambda updates: late.extend(update.container_id for update in updates),
            )
        )
        assert self.create(talk, "a") == nri.CreateContainerResponse()
        assert late == []
        talk.session.catch_up()
        assert late == [OTHER.container_id]

    def test_a_fault_over_what_is_left_over_ends_no_session(self):
        made = {"create_container": lambda _pod, _container: (None, [OTHER]), "concerns": lambda _request: False}
        talk = Talk(Handlers(**made, left_over=raises))
        self.create(talk, "a")
        self.create(talk, "b")
        talk.session.catch_up()
        assert talk.stats.handler_errors["CreateContainer"] == 2

    def test_it_may_come_in_several_pieces(self):
        called = []
        talk = self.talk(called)
        container = nri.Container(id="a", env=["x" * 10_000])
        asked = request(99, "CreateContainer", nri.CreateContainerRequest(pod=POD, container=container))
        answers = [talk.feed(asked[start : start + 3_000]) for start in range(0, len(asked), 3_000)]
        assert [bool(answer) for answer in answers] == [False] * (len(answers) - 1) + [True]
        assert answers_in(answers[-1])[99] == ttrpc_pb2.Response()
        assert talk.session.behind

    def test_fields_in_another_order_are_answered_after_they_are_decoded(self):
        called = []
        talk = self.talk(called)
        payload = nri.CreateContainerRequest(pod=POD, container={"id": "a"}).SerializeToString()
        service, rest = ttrpc_pb2.Request(service=PLUGIN_SERVICE), ttrpc_pb2.Request(method="CreateContainer")
        rest.payload = payload
        body = rest.SerializeToString() + service.SerializeToString()
        answer = talk.feed(framing.write(framing.Message(1, 99, framing.REQUEST, body)))
        assert answers_in(answer)[99] == ttrpc_pb2.Response()
        assert called == ["a"]

    def test_another_services_call_of_that_name_is_not_implemented(self):
        talk = self.talk([])
        answer = talk.ask("CreateContainer", nri.CreateContainerRequest(pod=POD), "some.other.Service")
        assert answer.status.code == ttrpc.Code.UNIMPLEMENTED

    @pytest.mark.parametrize(
        ("ask", "event"),
        [
            (lambda talk: TestWhatConcernsNobody.create(talk, "m", "opted in"), "m"),
            (lambda talk: talk.ask("StopContainer", nri.StopContainerRequest(container={"id": "a"})), "stop a"),
        ],
        ids=["a member's", "another event"],
    )
    def test_before_what_is_decoded_all_that_came_earlier_is_handled_in_its_order(self, ask, event):
        called = []
        talk = self.talk(called)
        self.create(talk, "a")
        self.create(talk, "b")
        ask(talk)
        assert called == ["a", "b", event]

    @pytest.mark.parametrize("method", ["PostCreateContainer", "StateChange"])
    @pytest.mark.parametrize(("label", "heard"), [("", []), ("opted in", ["a", "created a"])])
    def test_that_it_was_created_is_not_read_either(self, method: str, label: str, heard: list[str]):
        called = []
        talk = self.talk(called, post_create_container=lambda _pod, container: called.append(f"created {container.id}"))
        self.create(talk, "a", label)
        about = nri.Container(id="a", labels={"app": label}, env=["x" * 300])
        news = {
            "PostCreateContainer": nri.PostCreateContainerRequest(pod=POD, container=about),
            "StateChange": nri.StateChangeEvent(event=nri.POST_CREATE_CONTAINER, pod=POD, container=about),
        }
        answer = talk.ask(method, news[method])
        assert answer == ttrpc_pb2.Response()
        assert (called, talk.session.behind) == (heard, not heard)
        assert talk.stats.requests["PostCreateContainer"] == 1

    def test_before_a_synchronize_too(self):
        called = []
        talk = self.talk(called, synchronize=lambda _pods, _containers: called.append("synchronize") or [])
        called.clear()
        self.create(talk, "a")
        talk.ask("Synchronize", nri.SynchronizeRequest())
        assert called == ["a", "synchronize"]

    def test_no_more_wait_than_the_bound(self):
        called = []
        talk = self.talk(called)
        for number in range(session.MOST_POSTPONED + 1):
            self.create(talk, str(number))
        assert called == [str(number) for number in range(session.MOST_POSTPONED + 1)]

    def test_a_fault_of_ours_is_counted_as_any_other(self, caplog):
        talk = Talk(Handlers(create_container=raises, concerns=lambda _request: False))
        self.create(talk, "a")
        talk.session.catch_up()
        assert talk.stats.handler_errors["CreateContainer"] == 1
        assert "CreateContainer" in caplog.text

    def test_what_is_no_message_ends_the_session(self):
        talk = Talk(Handlers(create_container=raises, concerns=lambda _request: False))
        talk.ask("CreateContainer", b"\xff")
        with pytest.raises(PeerError):
            talk.session.catch_up()
