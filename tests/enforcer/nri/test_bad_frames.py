"""What a runtime should not send: each ends the session, or one call, in words that name the fault."""

import logging
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enforcer.nri.dispatch import ROWS
from enforcer.nri.errors import (
    PeerError,
    ProtocolError,
)
from enforcer.nri.handlers import Handlers
from lab.standins.runtime import framing
from numakin.wire import nri_pb2 as nri
from numakin.wire import ttrpc_pb2
from tests.enforcer.nri.peer import Talk, request
from tests.enforcer.nri.recording import answers_in


def raw(connection, stream, kind, payload):
    return framing.write(framing.Message(connection, stream, kind, payload))


BAD_FRAMES = {
    "not NRI at all": (
        b"GET / HTTP/1.1\r\n\r\n",
        "the runtime sent a frame for connection 1195725856; NRI has 1 and 2 only",
    ),
    "too long": (
        struct.pack(">II", 2, 0x7FFFFFFF),
        "the runtime sent a frame of 2147483647 bytes; at most 16777216 are allowed",
    ),
    "unknown type": (raw(1, 1, 9, b""), "the runtime sent a ttrpc message of type 9; 1, 2 and 3 are known"),
    "streaming": (raw(1, 1, 3, b""), "the runtime sent a DATA where only requests may come"),
    "answer where requests come": (raw(1, 1, 2, b""), "the runtime sent a RESPONSE where only requests may come"),
    "request where answers come": (raw(2, 1, 1, b""), "the runtime sent a REQUEST on stream 1, where we asked nothing"),
    "answer to nothing": (raw(2, 9, 2, b""), "the runtime sent a RESPONSE on stream 9, where we asked nothing"),
    "no ttrpc request": (raw(1, 1, 1, b"\xff"), "the runtime sent a request that can't be decoded as ttrpc.Request"),
    "no CreateContainerRequest": (
        request(1, "CreateContainer", b"\xff"),
        "the runtime sent a CreateContainer that can't be decoded as nri.pkg.api.v1alpha1.CreateContainerRequest",
    ),
    "a name that is no UTF-8": (
        request(1, "RunPodSandbox", b"\x0a\x03\x12\x01\xff"),
        "the runtime sent a RunPodSandbox that can't be decoded as nri.pkg.api.v1alpha1.RunPodSandboxRequest",
    ),
    "too long an answer": (
        struct.pack(">II", 2, 10) + struct.pack(">IIBB", (64 << 20) + 1, 1, 2, 0),
        "the runtime answered with 67108865 bytes; at most 67108864 are taken",
    ),
}


class TestBadFrames:
    @pytest.mark.parametrize(("data", "words"), BAD_FRAMES.values(), ids=BAD_FRAMES)
    def test_each_is_the_runtimes_fault_in_these_words(self, data, words):
        with pytest.raises(PeerError) as raised:
            Talk(Handlers()).feed(data)
        assert str(raised.value) == words

    def test_an_answer_that_is_no_ttrpc_response(self):
        talk = Talk(Handlers(), ready=False)
        with pytest.raises(PeerError) as raised:
            talk.feed(raw(2, 1, 2, b"\xff"))
        assert str(raised.value) == "the runtime's answer on stream 1 is no ttrpc response"

    def test_a_request_over_the_bound_is_refused_with_code_8_and_the_session_goes_on(self):
        talk, length = Talk(Handlers()), (64 << 20) + 1
        refused = talk.feed(struct.pack(">II", 1, 10) + struct.pack(">IIBB", length, 77, 1, 0))
        status = answers_in(refused)[77].status
        assert (status.code, status.message) == (8, "a request of 67108865 bytes: at most 67108864 are taken")
        for size in [1 << 24] * 4 + [1]:
            assert talk.feed(struct.pack(">II", 1, size) + bytes(size)) == b""
        assert talk.ask("Shutdown", nri.Empty()) == ttrpc_pb2.Response()

    @given(st.binary(max_size=300))
    def test_garbage_gives_answers_or_a_protocol_error(self, data):
        logging.disable()
        try:
            Talk(Handlers()).feed(data)
        except ProtocolError:
            pass
        finally:
            logging.disable(logging.NOTSET)

    @given(st.binary(max_size=100), st.sampled_from([row.method for row in ROWS]), st.booleans())
    def test_a_garbled_payload_gives_an_answer_or_a_protocol_error(self, payload, method, as_state_change):
        logging.disable()
        try:
            Talk(Handlers()).ask("StateChange" if as_state_change else method, payload)
        except ProtocolError:
            pass
        finally:
            logging.disable(logging.NOTSET)
