"""Updates that no request asked for: one at a time, never in the midst of something else."""

import pytest

from enforcer.nri import calls
from enforcer.nri.calls import UpdateAnswer
from enforcer.nri.errors import UsageError
from enforcer.nri.handlers import Handlers
from numakin.wire import nri_pb2 as nri
from numakin.wire import ttrpc_pb2
from tests.enforcer.nri.peer import ABOUT, OTHER, POD, Talk, raises, request, response
from tests.enforcer.nri.recording import answers_in, messages


class TestUnsolicitedUpdates:
    def test_they_wait_for_the_synchronization(self):
        talk = Talk(Handlers(), ready=False)
        talk.feed(response(1))
        talk.ask("Configure", nri.ConfigureRequest(NRI_version="v0.12.1"))
        talk.update("c1")
        assert talk.session.due() == b""
        talk.ask("Synchronize", nri.SynchronizeRequest())
        assert talk.session.due() != b""

    def test_the_first_event_will_do_where_the_runtime_never_synchronizes(self):
        talk = Talk(Handlers(), ready=False)
        talk.feed(response(1))
        talk.ask("Configure", nri.ConfigureRequest(NRI_version="v0.12.1"))
        talk.update("c1")
        talk.ask("StateChange", nri.StateChangeEvent(event=1, pod=POD))
        assert talk.session.due() != b""

    @pytest.mark.parametrize("version", ["", "v0.10.0", "v0.12.0"])
    def test_a_runtime_that_might_hang_over_them_gets_none(self, version):
        with pytest.raises(UsageError, match=r"may hang this runtime for good: it is safe since NRI 0\.12\.1"):
            Talk(Handlers(), NRI_version=version).update("c1")

    def test_before_the_runtime_has_said_what_it_is_none_is_taken(self):
        with pytest.raises(UsageError, match="may hang this runtime"):
            Talk(Handlers(), ready=False).update("c1")

    def test_a_failure_is_never_asked_to_be_passed_over(self):
        """The runtime would report nothing."""
        talk = Talk(Handlers())
        forgiving = nri.ContainerUpdate(container_id="c1", ignore_failure=True)
        talk.session.update_containers([forgiving], print)
        (sent,) = messages(talk.session.due())
        request = nri.UpdateContainersRequest.FromString(ttrpc_pb2.Request.FromString(sent.payload).payload)
        assert [update.ignore_failure for update in request.update] == [False]
        assert forgiving.ignore_failure, "the answer to an event still is"

    def test_one_asked_for_inside_a_handler_leaves_after_that_event_is_answered(self):
        def create(*_):
            got.append(talk.update("c9"))
            assert talk.session.due() == b""
            return None, []

        got = []
        talk = Talk(Handlers(create_container=create))
        answers = talk.session.receive(request(9, "CreateContainer", nri.CreateContainerRequest(**ABOUT)))
        assert list(answers_in(next(answers))) == [9]
        assert list(answers) == []
        assert talk.session.due() != b""

    @pytest.mark.parametrize("size", [1, 8, 17, 4200])
    def test_they_wait_while_a_request_is_half_read(self, size):
        talk = Talk(Handlers())
        talk.update("c1")
        data = request(9, "CreateContainer", nri.CreateContainerRequest(container=nri.Container(id="x" * 9000)))
        talk.feed(data[:size])
        assert talk.session.due() == b""
        talk.feed(data[size:])
        assert talk.session.due() != b""

    def test_one_is_under_way_at_a_time_with_odd_increasing_streams(self):
        talk = Talk(Handlers())
        first, second = talk.update("c1"), talk.update("c2")
        (sent,) = messages(talk.session.due())
        assert (sent.connection, sent.stream) == (2, 3)
        assert talk.session.due() == b""
        talk.feed(response(3, nri.UpdateContainersResponse(failed=[OTHER])))
        assert (first, second) == ([UpdateAnswer(failed=(OTHER,))], [])
        (sent,) = messages(talk.session.due())
        assert sent.stream == 5
        talk.feed(response(5, code=2, text="NRI update of some containers failed"))
        assert second == [UpdateAnswer(error="NRI update of some containers failed")]

    def test_the_end_of_the_session_answers_all_that_wait(self):
        talk = Talk(Handlers())
        under_way, waiting = talk.update("c1"), talk.update("c2")
        talk.session.due()
        talk.session.end("the runtime closed the connection")
        lost = [UpdateAnswer(error="the runtime closed the connection")]
        assert (under_way, waiting) == (lost, lost)
        with pytest.raises(UsageError, match="a session that has ended"):
            talk.update("c3")

    def test_an_exception_in_taking_the_answer_does_not_end_the_session(self, caplog):
        talk = Talk(Handlers())
        talk.session.update_containers([OTHER], raises)
        talk.session.due()
        talk.feed(response(3))
        assert "taking the answer to UpdateContainers failed" in caplog.text

    def test_more_than_may_wait_are_refused_by_name(self):
        talk = Talk(Handlers())
        for _ in range(calls.MAX_QUEUED):
            talk.update("c1")
        with pytest.raises(UsageError, match="64 UpdateContainers wait already"):
            talk.update("c1")

    def test_one_that_is_too_long_is_refused_by_name(self):
        with pytest.raises(UsageError, match="the runtime takes at most 4194304"):
            Talk(Handlers()).update("x" * (4 << 20))
