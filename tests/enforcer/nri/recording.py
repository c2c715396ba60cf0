"""Recorded exchanges as steps to play to a session, and what a plugin wrote, decoded without the code under test."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.standins.runtime import framing
from numakin.wire import nri_pb2 as nri
from numakin.wire import ttrpc_pb2

FOLDER = Path(__file__).parents[2] / "recordings" / "nri"


@dataclass(frozen=True)
class Call:
    """The recorded plugin asked for this by itself."""

    request: nri.UpdateContainersRequest


@dataclass(frozen=True)
class Recording:
    """`steps`: what the runtime sent, joined up to where the plugin called by itself. `cuts`: where one read ended and
    the next began, counted over all that was read. `written`: all that the plugin wrote.
    """

    steps: tuple[bytes | Call, ...]
    cuts: tuple[int, ...]
    written: bytes


def load(name: str) -> Recording:
    raw = (FOLDER / name).read_bytes()
    text = gzip.decompress(raw) if name.endswith(".gz") else raw
    steps: list[bytes | Call] = [b""]
    written, read, cuts = b"", 0, []
    for line in text.splitlines():
        entry = json.loads(line)
        data = bytes.fromhex(entry["hex"])
        if entry["dir"] == "in":
            steps[-1] += data
            read += len(data)
            cuts.append(read)
            continue
        written += data
        for message in framing.Incoming().feed(data):
            if message.kind != framing.REQUEST:
                continue
            request = ttrpc_pb2.Request.FromString(message.payload)
            if request.method == "UpdateContainers":
                steps += [Call(nri.UpdateContainersRequest.FromString(request.payload)), b""]
    return Recording(tuple(steps), tuple(cuts), written)


def requests_in(data: bytes) -> dict[int, str]:
    """The runtime's calls by stream id: the names of their methods. `data` is as a runtime writes it."""
    methods = {}
    for message in messages(data):
        if message.kind == framing.REQUEST:
            methods[message.stream] = ttrpc_pb2.Request.FromString(message.payload).method
    return methods


def answers_in(data: bytes) -> dict[int, ttrpc_pb2.Response]:
    """A plugin's answers by stream id."""
    return {
        message.stream: ttrpc_pb2.Response.FromString(message.payload)
        for message in messages(data)
        if message.kind == framing.RESPONSE
    }


def messages(data: bytes) -> Iterator[framing.Message]:
    yield from framing.Incoming().feed(data)
