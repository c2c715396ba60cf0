import contextlib
import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enforcer.nri import ttrpc
from enforcer.nri.errors import PeerError, ProtocolError, UsageError
from enforcer.nri.ttrpc import Decoder, FrameKind, Message, Oversized, encode
from numakin.wire import ttrpc_pb2

MESSAGES = st.lists(
    st.builds(Message, st.integers(0, 2**32 - 1), st.sampled_from(FrameKind), st.binary(max_size=40)), max_size=6
)


def fed(data, cuts):
    decoder, edges = Decoder(), [0, *sorted(cuts), len(data)]
    return [each for start, end in itertools.pairwise(edges) for each in decoder.feed(data[start:end])]


@given(MESSAGES, st.lists(st.integers(0, 400), max_size=8))
def test_any_split_of_a_stream_gives_the_same_messages(messages, cuts):
    data = b"".join(encode(message.stream, message.kind, message.payload) for message in messages)
    assert fed(data, [min(cut, len(data)) for cut in cuts]) == messages


@given(st.lists(st.integers(0, 30), max_size=6))
def test_a_message_over_the_bound_is_told_once_and_thrown_away_however_it_is_split(cuts):
    # The bound is too long for a test to send: what follows the header is cut short, so nothing comes after it.
    header = struct.pack(">IIBB", ttrpc.MAX_INCOMING + 1, 7, 1, 0)
    assert fed(header + b"x" * 20, cuts) == [Oversized(7, FrameKind.REQUEST, ttrpc.MAX_INCOMING + 1)]


def test_a_message_after_one_over_the_bound_is_read_again():
    decoder = Decoder()
    length = ttrpc.MAX_INCOMING + 5
    assert decoder.feed(struct.pack(">IIBB", length, 7, 1, 0)) == [Oversized(7, FrameKind.REQUEST, length)]
    for _ in range(16):
        assert decoder.feed(bytes(ttrpc.MAX_INCOMING // 16)) == []
    assert decoder.pending
    assert decoder.feed(b"12345" + encode(9, FrameKind.REQUEST, b"after")) == [Message(9, FrameKind.REQUEST, b"after")]
    assert not decoder.pending


def test_more_than_ttrpcs_own_four_mebibytes_are_taken_since_old_containerds_send_them():
    data = struct.pack(">IIBB", 6 << 20, 3, 1, 0) + bytes(6 << 20)
    assert Decoder().feed(data) == [Message(3, FrameKind.REQUEST, bytes(6 << 20))]


@pytest.mark.parametrize("kind", [0, 4, 255])
def test_an_unknown_type_is_the_runtimes_fault(kind):
    with pytest.raises(PeerError) as raised:
        Decoder().feed(struct.pack(">IIBB", 0, 1, kind, 0))
    assert str(raised.value) == f"the runtime sent a ttrpc message of type {kind}; 1, 2 and 3 are known"


@given(st.binary(max_size=200))
def test_garbage_gives_messages_or_a_protocol_error(data):
    with contextlib.suppress(ProtocolError):
        Decoder().feed(data)


def test_a_message_that_the_runtime_would_throw_away_is_not_sent():
    with pytest.raises(UsageError) as raised:
        encode(1, FrameKind.RESPONSE, bytes((4 << 20) + 1))
    assert str(raised.value) == "a ttrpc message of 4194305 bytes: the runtime takes at most 4194304"


def test_a_refusal_carries_its_code_and_words():
    (message,) = Decoder().feed(ttrpc.encode_refusal(5, ttrpc.Code.UNIMPLEMENTED, "no such method"))
    status = ttrpc_pb2.Response.FromString(message.payload).status
    assert (message.stream, status.code, status.message) == (5, 12, "no such method")
