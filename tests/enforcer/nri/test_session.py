import pytest

from enforcer.nri import session, ttrpc
from enforcer.nri.dispatch import ROWS
from enforcer.nri.errors import (
    ConfigurationRefusedError,
    PeerError,
    RegistrationRefusedError,
)
from enforcer.nri.events import Runtime
from enforcer.nri.handlers import Handlers
from enforcer.nri.session import Stage
from lab.standins.runtime import framing
from numakin.wire import nri_pb2 as nri
from numakin.wire import ttrpc_pb2
from tests.enforcer.nri.peer import ABOUT, CONTAINER, OTHER, POD, Talk, raises, request, response
from tests.enforcer.nri.recording import answers_in, messages

PIN = nri.ContainerAdjustment(
    linux=nri.LinuxContainerAdjustment(resources=nri.LinuxResources(cpu=nri.LinuxCPU(cpus="1-2", mems="0")))
)
OBSERVED = {
    "RunPodSandbox": 1,
    "StopPodSandbox": 2,
    "RemovePodSandbox": 3,
    "PostCreateContainer": 5,
    "StartContainer": 6,
    "PostStartContainer": 7,
    "PostUpdateContainer": 9,
    "RemoveContainer": 11,
}


def message_of(method, **fields):
    kind = getattr(nri, method + "Request")
    return kind(**{name: value for name, value in fields.items() if name in kind.DESCRIPTOR.fields_by_name})


class TestRegistration:
    def test_the_first_words_are_register_plugin_on_connection_2_stream_1(self):
        (message,) = messages(Talk(Handlers(), ready=False).registration)
        call = ttrpc_pb2.Request.FromString(message.payload)
        received = nri.RegisterPluginRequest.FromString(call.payload)
        assert (message.connection, message.stream, message.kind) == (2, 1, framing.REQUEST)
        assert (call.service, call.method) == ("nri.pkg.api.v1alpha1.Runtime", "RegisterPlugin")
        assert (received.plugin_name, received.plugin_idx) == ("numakin", "10")

    def test_a_refusal_is_raised_in_the_runtimes_words(self):
        talk = Talk(Handlers(), ready=False)
        with pytest.raises(RegistrationRefusedError) as raised:
            talk.feed(response(1, code=2, text="invalid plugin index"))
        assert str(raised.value) == "the runtime refused plugin 10-numakin: invalid plugin index"

    def test_configure_may_come_before_the_answer_to_the_registration(self):
        talk = Talk(Handlers(), ready=False)
        talk.ask("Configure", nri.ConfigureRequest(runtime_name="containerd", runtime_version="2.1.9"))
        assert talk.feed(response(1)) == b""
        assert talk.session.stage is Stage.CONFIGURED


class TestConfigure:
    def test_the_agent_gets_the_configuration_and_what_the_runtime_is(self):
        got = []
        talk = Talk(Handlers(configure=lambda *told: got.append(told)), ready=False)
        talk.ask(
            "Configure",
            nri.ConfigureRequest(
                config="a=1",
                runtime_name="cri-o",
                runtime_version="1.34.0",
                registration_timeout=6000,
                request_timeout=2500,
                NRI_version="v0.12.0",
            ),
        )
        assert got == [("a=1", Runtime("cri-o", "1.34.0", "v0.12.0", 6.0, 2.5))]
        assert talk.session.runtime == got[0][1]

    def test_an_old_runtime_that_tells_no_timeouts_has_nris_defaults(self):
        talk = Talk(Handlers(), runtime_version="2.1.9", NRI_version="")
        assert talk.session.runtime == Runtime("containerd", "2.1.9", "", 5.0, 2.0)

    def test_a_refused_configuration_is_told_to_the_runtime_and_ends_the_session(self):
        def refuse(*_):
            raise ValueError("unknown option 'colour'")

        talk = Talk(Handlers(configure=refuse), ready=False)
        answers = talk.session.receive(request(1, "Configure", nri.ConfigureRequest()))
        status = answers_in(next(answers))[1].status
        assert (status.code, status.message) == (3, "configuration refused: unknown option 'colour'")
        with pytest.raises(ConfigurationRefusedError, match="unknown option 'colour'"):
            next(answers)


class TestSynchronize:
    def test_the_last_part_has_the_updates_and_the_parts_before_only_more(self):
        got = []

        def synchronize(pods, containers):
            got.append(([pod.name for pod in pods], [container.name for container in containers]))
            return [OTHER]

        talk = Talk(Handlers(synchronize=synchronize), ready=False)
        parts = [
            nri.SynchronizeRequest(pods=[POD], more=True),
            nri.SynchronizeRequest(more=True),
            nri.SynchronizeRequest(containers=[CONTAINER, CONTAINER]),
        ]
        answers = [nri.SynchronizeResponse.FromString(talk.ask("Synchronize", part).payload) for part in parts]
        assert [(answer.more, list(answer.update)) for answer in answers] == [(True, []), (True, []), (False, [OTHER])]
        assert got == [(["cart"], ["server", "server"])]

    def test_a_second_synchronize_starts_afresh(self):
        got = []
        talk = Talk(Handlers(synchronize=lambda pods, _: got.append(len(pods)) or []), ready=False)
        talk.ask("Synchronize", nri.SynchronizeRequest(pods=[POD, POD]))
        talk.ask("Synchronize", nri.SynchronizeRequest(pods=[POD]))
        assert got == [2, 1]

    def test_one_message_of_six_mebibytes_is_taken(self):
        got = []
        talk = Talk(Handlers(synchronize=lambda _, containers: got.append(len(containers)) or []), ready=False)
        big = nri.Container(id="big", env=["x" * (6 << 20)])
        assert not talk.ask("Synchronize", nri.SynchronizeRequest(containers=[big, CONTAINER])).status.code
        assert got == [2]

    def test_an_exception_is_answered_with_no_update(self):
        talk = Talk(Handlers(synchronize=raises), ready=False)
        assert talk.ask("Synchronize", nri.SynchronizeRequest()) == ttrpc_pb2.Response()
        assert talk.session.stage is Stage.SYNCHRONIZED

    def test_parts_without_end_end_the_session_since_the_runtime_forgets_us(self, monkeypatch):
        monkeypatch.setattr(session, "MAX_SYNCHRONIZE", 100)
        talk = Talk(Handlers(), ready=False)
        talk.ask("Synchronize", nri.SynchronizeRequest(pods=[POD], more=True))
        with pytest.raises(PeerError, match="not synchronized: Synchronize: over 100 bytes in all"):
            talk.ask("Synchronize", nri.SynchronizeRequest(pods=[nri.PodSandbox(name="x" * 99)], more=True))


class TestEvents:
    def test_create_container_is_answered_with_the_adjustment_and_the_updates(self):
        talk = Talk(Handlers(create_container=lambda pod, container: (PIN, [OTHER])))
        answer = talk.ask("CreateContainer", nri.CreateContainerRequest(**ABOUT))
        expected = nri.CreateContainerResponse(adjust=PIN, update=[OTHER])
        assert nri.CreateContainerResponse.FromString(answer.payload) == expected

    def test_no_adjustment_and_no_update_is_an_empty_answer(self):
        talk = Talk(Handlers(create_container=lambda pod, container: (None, [])))
        assert talk.ask("CreateContainer", nri.CreateContainerRequest(**ABOUT)) == ttrpc_pb2.Response()

    def test_update_and_stop_are_answered_with_updates(self):
        resources = nri.LinuxResources(cpu=nri.LinuxCPU(cpus="7"))
        got = []
        talk = Talk(
            Handlers(
                update_container=lambda pod, container, wanted: got.append(wanted) or [OTHER],
                stop_container=lambda pod, container: [OTHER],
            )
        )
        update = talk.ask("UpdateContainer", nri.UpdateContainerRequest(**ABOUT, linux_resources=resources))
        stop = talk.ask("StopContainer", nri.StopContainerRequest(**ABOUT))
        assert got == [resources]
        assert list(nri.UpdateContainerResponse.FromString(update.payload).update) == [OTHER]
        assert list(nri.StopContainerResponse.FromString(stop.payload).update) == [OTHER]

    @pytest.mark.parametrize(("method", "event"), OBSERVED.items())
    def test_its_own_call_and_a_state_change_reach_the_same_handler(self, method, event):
        got = []
        row = next(row for row in ROWS if row.method == method)
        talk = Talk(Handlers(**{row.handler: lambda *about: got.append(about)}))
        assert talk.ask(method, message_of(method, **ABOUT)) == ttrpc_pb2.Response()
        change = nri.StateChangeEvent(event=event, pod=POD, container=CONTAINER)
        assert talk.ask("StateChange", change) == ttrpc_pb2.Response()
        assert got == [(POD, CONTAINER) if "Container" in method else (POD,)] * 2
        assert talk.stats.requests[method] == 2

    def test_a_pod_update_comes_with_overhead_and_resources(self):
        got = []
        talk = Talk(Handlers(update_pod_sandbox=lambda *about: got.append(about)))
        overhead, resources = (nri.LinuxResources(cpu=nri.LinuxCPU(cpus=cpus)) for cpus in "12")
        message = nri.UpdatePodSandboxRequest(pod=POD, overhead_linux_resources=overhead, linux_resources=resources)
        assert talk.ask("UpdatePodSandbox", message) == ttrpc_pb2.Response()
        assert got == [(POD, overhead, resources)]

    @pytest.mark.parametrize("reason", ["", "not on this node"])
    def test_a_validator_rejects_with_a_reason_only(self, reason):
        talk = Talk(Handlers(validate_container_adjustment=lambda _: reason))
        answer = talk.ask("ValidateContainerAdjustment", nri.ValidateContainerAdjustmentRequest(**ABOUT))
        verdict = nri.ValidateContainerAdjustmentResponse.FromString(answer.payload)
        assert (verdict.reject, verdict.reason) == (bool(reason), reason)

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.method)
    def test_an_event_without_a_handler_is_answered_with_success(self, row):
        assert Talk(Handlers()).ask(row.method, message_of(row.method, **ABOUT)) == ttrpc_pb2.Response()

    @pytest.mark.parametrize("event", [0, 4, 12, 14, 99])
    def test_a_state_change_that_can_be_none_is_answered_with_success_and_counted(self, event):
        talk = Talk(Handlers(create_container=raises))
        assert talk.ask("StateChange", nri.StateChangeEvent(event=event, pod=POD)) == ttrpc_pb2.Response()
        assert talk.stats.unknown_methods == {f"StateChange({event})": 1}

    def test_shutdown_is_told_to_the_agent(self):
        got = []
        talk = Talk(Handlers(shutdown=lambda: got.append("shutdown")))
        assert talk.ask("Shutdown", nri.Empty()) == ttrpc_pb2.Response()
        assert got == ["shutdown"]


class TestMistakesOfOurs:
    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.method)
    def test_an_exception_in_a_handler_is_an_empty_success_logged_with_its_subject(self, row, caplog):
        talk = Talk(Handlers(**{row.handler: raises}))
        assert talk.ask(row.method, message_of(row.method, **ABOUT)) == ttrpc_pb2.Response()
        assert talk.stats.handler_errors == {row.method: 1}
        where = f"{row.method} for pod shop/cart"
        where += " container server (c1)" if "Container" in row.method else ""
        assert where + " failed; answered with no change" in caplog.text
        assert "ZeroDivisionError: boom" in caplog.text

    @pytest.mark.parametrize("result", [None, PIN, (PIN, None, 3), ("pin", []), (PIN, [1])])
    def test_a_result_of_the_wrong_shape_is_an_empty_success(self, result):
        talk = Talk(Handlers(create_container=lambda *_: result))
        assert talk.ask("CreateContainer", nri.CreateContainerRequest(**ABOUT)) == ttrpc_pb2.Response()
        assert talk.stats.handler_errors == {"CreateContainer": 1}

    def test_an_answer_that_the_runtime_would_throw_away_is_an_empty_success(self, caplog):
        huge = nri.ContainerAdjustment(annotations={"huge": "x" * (4 << 20)})
        talk = Talk(Handlers(create_container=lambda *_: (huge, [])))
        assert talk.ask("CreateContainer", nri.CreateContainerRequest(**ABOUT)) == ttrpc_pb2.Response()
        assert "at most 4194048 can be sent" in caplog.text

    def test_the_largest_answer_that_may_be_sent_is_sent(self):
        pad = ttrpc.MAX_PAYLOAD - 40
        huge = nri.ContainerAdjustment(annotations={"huge": "x" * pad})
        talk = Talk(Handlers(create_container=lambda *_: (huge, [])))
        answer = talk.ask("CreateContainer", nri.CreateContainerRequest(**ABOUT))
        assert len(nri.CreateContainerResponse.FromString(answer.payload).adjust.annotations["huge"]) == pad

    @pytest.mark.parametrize("handler", ["shutdown", "synchronize"])
    def test_an_exception_elsewhere_does_not_end_the_session(self, handler):
        talk = Talk(Handlers(**{handler: raises}))
        assert talk.ask("Shutdown", nri.Empty()) == ttrpc_pb2.Response()


class TestUnknown:
    @pytest.mark.parametrize(
        ("service", "method"),
        [
            ("nri.pkg.api.v1alpha1.Plugin", "FreezeContainer"),
            ("nri.pkg.api.v1alpha1.Plugin", ""),
            ("nri.pkg.api.v1beta1.Plugin", "CreateContainer"),
            ("nri.pkg.api.v1beta1.Plugin", "Configure"),
        ],
    )
    def test_an_unknown_method_gets_code_12_and_the_session_goes_on(self, service, method):
        talk = Talk(Handlers())
        status = talk.ask(method, nri.Empty(), service).status
        assert (status.code, status.message) == (12, f"{service}/{method} is not implemented")
        assert talk.stats.unknown_methods == {method: 1}
        assert talk.ask("Shutdown", nri.Empty()) == ttrpc_pb2.Response()

    def test_fields_of_a_newer_runtime_are_passed_over(self):
        talk = Talk(Handlers(create_container=lambda *_: (PIN, [])))
        newer = nri.CreateContainerRequest(**ABOUT).SerializeToString() + bytes.fromhex("c23e0461626364")
        assert talk.ask("CreateContainer", newer).payload


class TestConcurrency:
    def test_requests_that_come_together_are_answered_by_stream_id(self):
        talk = Talk(
            Handlers(create_container=lambda _, container: (None, [nri.ContainerUpdate(container_id=container.id)]))
        )
        streams = [101, 7, 55]
        together = b"".join(
            request(stream, "CreateContainer", nri.CreateContainerRequest(container=nri.Container(id=str(stream))))
            for stream in streams
        )
        answers = answers_in(talk.feed(together))
        assert list(answers) == streams
        for stream, answer in answers.items():
            assert nri.CreateContainerResponse.FromString(answer.payload).update[0].container_id == str(stream)

    def test_each_answer_is_there_before_the_next_request_is_handled(self):
        handled = []
        talk = Talk(Handlers(start_container=lambda _, container: handled.append(container.id)))
        both = [
            request(s, "StartContainer", nri.StartContainerRequest(container=nri.Container(id=str(s)))) for s in (3, 5)
        ]
        answers = talk.session.receive(b"".join(both))
        assert (list(answers_in(next(answers))), handled) == ([3], ["3"])
        assert (list(answers_in(next(answers))), handled) == ([5], ["3", "5"])
