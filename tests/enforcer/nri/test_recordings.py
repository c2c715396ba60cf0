"""What real containerds sent, played to the session: it must answer as the recorded plugin did, however it is split."""

import itertools
import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enforcer.nri.dispatch import ROWS
from enforcer.nri.events import Runtime
from enforcer.nri.handlers import Handlers
from enforcer.nri.identity import Identity
from enforcer.nri.session import Session, Stage
from enforcer.nri.stats import Stats
from numakin.wire import nri_pb2 as nri
from tests import examples
from tests.enforcer.nri import recording
from tests.enforcer.nri.lives import RUNTIMES
from tests.enforcer.nri.recording import Call

FULL = ["containerd-1.7.24-full.jsonl", "containerd-2.1.9-full.jsonl"]
SPLIT_SYNC = "containerd-2.1.9-split-sync.jsonl.gz"
LIVES = [f"{name}-{what}.jsonl" for name in RUNTIMES.values() for what in ("life", "restarted")]
"""Of runtimes that know the events of NRI 0.10, too."""

WIDE = 1000

load = cache(recording.load)


class Lab:
    """Does what the recorded plugin did, and remembers what it was called for."""

    def __init__(self):
        self.seen = []
        observers = {row.handler: self.observer(row.method) for row in ROWS}
        deciders = {
            "synchronize": self.synchronize,
            "create_container": self.create_container,
            "update_container": lambda *_: [],
            "stop_container": self.stop_container,
        }
        self.stats = Stats()
        self.session = Session(Identity("10", "lab"), Handlers(**observers | deciders), self.stats)
        self.answers = []

    def observer(self, method):
        return lambda pod, *container: self.seen.append((method, pod.name, *(each.name for each in container)))

    def synchronize(self, pods, containers):
        self.seen.append(("Synchronize", len(pods), len(containers)))
        return []

    def create_container(self, pod, container):
        self.seen.append(("CreateContainer", pod.name, container.name))
        adjust = nri.ContainerAdjustment()
        adjust.linux.resources.cpu.cpus, adjust.linux.resources.cpu.mems = "1", "0"
        return adjust, []

    def stop_container(self, pod, container):
        self.seen.append(("StopContainer", pod.name, container.name))
        return []

    def play(self, steps, cuts=()):
        """Everything that the session writes; what it reads is cut at these places, counted over the whole stream."""
        out, begin = self.session.register(), 0
        for step in steps:
            if isinstance(step, Call):
                # To these runtimes the recorded plugin sent what the session would not.
                self.session.runtime = Runtime("containerd", "2.3.9", "v0.12.1")
                self.session.update_containers(step.request.update, self.answers.append)
                out += self.session.due()
                continue
            edges = [0, *sorted(cut - begin for cut in cuts if 0 < cut - begin < len(step)), len(step)]
            for start, end in itertools.pairwise(edges):
                out += b"".join(self.session.receive(step[start:end]))
            begin += len(step)
        return out


def size(name):
    return sum(len(step) for step in load(name).steps if isinstance(step, bytes))


@cache
def unsplit(name):
    lab = Lab()
    return lab.play(load(name).steps), tuple(lab.seen)


@pytest.mark.parametrize("name", [*FULL, SPLIT_SYNC, *LIVES])
def test_the_runtime_gets_the_answers_that_the_recorded_plugin_gave(name):
    ours, theirs = recording.answers_in(unsplit(name)[0]), recording.answers_in(load(name).written)
    assert ours.keys() == theirs.keys()
    methods = recording.requests_in(b"".join(step for step in load(name).steps if isinstance(step, bytes)))
    for stream, answer in theirs.items():
        if methods[stream] == "Configure":
            # The recorded one asked for everything by naming nothing; we name what there are handlers for.
            assert nri.ConfigureResponse.FromString(ours[stream].payload).events == (0x3FFF if name in LIVES else 0x7FF)
        else:
            assert ours[stream] == answer


@pytest.mark.parametrize("name", FULL)
def test_what_the_plugin_calls_by_itself_is_byte_for_byte_what_was_recorded(name):
    def calls(data):
        return [message for message in recording.messages(data) if message.connection == 2]

    assert calls(unsplit(name)[0]) == calls(load(name).written)


@pytest.mark.parametrize("name", FULL)
def test_the_agent_sees_the_events_in_order_and_its_updates_answered(name):
    lab = Lab()
    lab.play(load(name).steps)
    assert lab.seen == [
        ("Synchronize", 1, 1),
        ("RunPodSandbox", "p2"),
        ("CreateContainer", "p2", "pin1"),
        ("PostCreateContainer", "p2", "pin1"),
        ("StartContainer", "p2", "pin1"),
        ("PostStartContainer", "p2", "pin1"),
        ("PostUpdateContainer", "p2", "pin1"),
        ("StopContainer", "p2", "pin1"),
        ("RemoveContainer", "p2", "pin1"),
        ("StopPodSandbox", "p2"),
        ("RemovePodSandbox", "p2"),
        ("StopContainer", "before", "old"),
        ("RemoveContainer", "before", "old"),
        ("StopPodSandbox", "before"),
        ("RemovePodSandbox", "before"),
    ]
    assert [(answer.failed, answer.error) for answer in lab.answers] == [((), ""), ((), "")]
    assert not lab.stats.unknown_methods
    assert not lab.stats.handler_errors


def test_a_synchronize_in_parts_reaches_the_agent_whole():
    assert unsplit(SPLIT_SYNC)[1] == (("Synchronize", 20, 0),)


@pytest.mark.parametrize("name", [*FULL, SPLIT_SYNC, *LIVES])
def test_split_as_it_was_read_then_the_session_writes_the_same(name):
    assert Lab().play(load(name).steps, load(name).cuts) == unsplit(name)[0]


@pytest.mark.parametrize("spacing", [2, 97, 1009, 4099])
@pytest.mark.parametrize("name", FULL)
def test_split_at_every_place_the_session_writes_the_same(name, spacing):
    # Each play cuts a comb of places, so that all plays together cut at every one, without its neighbours. Of the widest
    # combs `make test` draws a quarter, others in each run.
    expected, end = unsplit(name)[0], size(name)
    every = range(1, spacing + 1)
    for first in every if spacing < WIDE else random.sample(every, examples.of(spacing)):
        assert Lab().play(load(name).steps, range(first, end, spacing)) == expected, f"first cut at {first}"


@pytest.mark.parametrize("name", FULL)
def test_byte_by_byte_the_session_writes_the_same(name):
    assert Lab().play(load(name).steps, range(size(name))) == unsplit(name)[0]


@settings(deadline=None, max_examples=examples.of(60))
@given(st.data())
@pytest.mark.parametrize("name", [*FULL, *LIVES])
def test_split_anywhere_the_session_writes_the_same(name, data):
    cuts = data.draw(st.lists(st.integers(0, size(name)), max_size=12))
    assert Lab().play(load(name).steps, cuts) == unsplit(name)[0]


@pytest.mark.parametrize("cut", [1, 9, 4096, 4104, 4105, 1 << 20, (4 << 20) + 4200])
def test_the_split_synchronize_cut_in_two_is_answered_the_same(cut):
    assert Lab().play(load(SPLIT_SYNC).steps, (cut,)) == unsplit(SPLIT_SYNC)[0]


@pytest.mark.parametrize("name", FULL)
def test_a_recording_ends_with_a_synchronized_session(name):
    lab = Lab()
    lab.play(load(name).steps)
    assert lab.session.stage is Stage.SYNCHRONIZED
