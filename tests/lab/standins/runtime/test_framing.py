import struct

import pytest

from lab.standins.runtime.framing import BrokenWireError, Incoming, Message, write


def frame(connection, payload):
    return struct.pack(">II", connection, len(payload)) + payload


def message(size):
    return struct.pack(">IIBB", size, 1, 2, 0) + bytes(size)


def frame_sizes(data):
    sizes = []
    while data:
        size = struct.unpack_from(">II", data)[1]
        sizes.append(size)
        data = data[8 + size :]
    return sizes


@pytest.mark.parametrize(("size", "frames"), [(0, [10]), (4086, [4096]), (4087, [4096, 1]), (9000, [4096, 4914])])
def test_messages_leave_as_gos_buffered_writer_cuts_them(size, frames):
    assert frame_sizes(write(Message(1, 1, 1, bytes(size)))) == frames


@pytest.mark.parametrize("step", [1, 3, 4096])
def test_small_frames_are_read(step):
    data = message(20_000)
    frames = b"".join(frame(1, data[at : at + step]) for at in range(0, len(data), step))
    assert [len(each.payload) for each in Incoming().feed(frames)] == [20_000]


def test_a_long_second_frame_is_read_since_the_reader_knows_the_length_by_then():
    data = message(20_000)
    assert len(list(Incoming().feed(frame(1, data[:4096]) + frame(1, data[4096:])))) == 1


def test_a_first_frame_over_4096_bytes_breaks_the_connection():
    with pytest.raises(BrokenWireError, match="a frame of 20010 bytes where 4096 fit"):
        list(Incoming().feed(frame(1, message(20_000))))


def test_two_messages_in_one_frame_are_both_read():
    assert len(list(Incoming().feed(frame(2, message(1) + message(2))))) == 2
