import contextlib
import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enforcer.nri.errors import PeerError, ProtocolError
from enforcer.nri.mux import Demux, Frame, encode

FRAMES = st.lists(st.builds(Frame, st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=6)


def on_wire(frames):
    return b"".join(struct.pack(">II", frame.connection, len(frame.payload)) + frame.payload for frame in frames)


def fed(data, cuts):
    demux, edges = Demux(), [0, *sorted(cuts), len(data)]
    return [frame for start, end in itertools.pairwise(edges) for frame in demux.feed(data[start:end])]


@given(FRAMES, st.lists(st.integers(0, 300), max_size=8))
def test_any_split_of_a_stream_gives_the_same_frames(frames, cuts):
    data = on_wire(frames)
    assert fed(data, [min(cut, len(data)) for cut in cuts]) == frames


def test_a_frame_is_pending_from_its_first_byte_to_its_last():
    demux = Demux()
    demux.feed(on_wire([Frame(1, b"abc")])[:-1])
    assert demux.pending
    demux.feed(b"c")
    assert not demux.pending


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ((0, 4), "the runtime sent a frame for connection 0; NRI has 1 and 2 only"),
        ((3, 4), "the runtime sent a frame for connection 3; NRI has 1 and 2 only"),
        ((0x48545450, 4), "the runtime sent a frame for connection 1213486160; NRI has 1 and 2 only"),
        ((1, 16777217), "the runtime sent a frame of 16777217 bytes; at most 16777216 are allowed"),
    ],
)
def test_a_bad_header_is_the_runtimes_fault(header, words):
    with pytest.raises(PeerError) as raised:
        Demux().feed(struct.pack(">II", *header))
    assert str(raised.value) == words


@given(st.binary(max_size=200))
def test_garbage_gives_frames_or_a_protocol_error(data):
    with contextlib.suppress(ProtocolError):
        Demux().feed(data)


@pytest.mark.parametrize(
    ("size", "frames"),
    [
        (10, [10]),
        (4096, [4096]),
        (4097, [4096, 1]),
        (10_000, [4096, 4096, 1808]),
        (64 * 4096, [4096] * 64),
        (64 * 4096 + 1, [4096, 63 * 4096 + 1]),
        (1 << 20, [4096, (1 << 20) - 4096]),
    ],
)
def test_a_message_leaves_in_frames_that_the_runtimes_reader_takes(size, frames):
    message = bytes(index % 251 for index in range(size))
    sent = Demux().feed(encode(1, message))
    assert [len(frame.payload) for frame in sent] == frames
    assert b"".join(frame.payload for frame in sent) == message
    assert {frame.connection for frame in sent} == {1}
