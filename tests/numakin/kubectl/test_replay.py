"""Recorded traffic, and what else might have become of the pods that made it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from numakin.kubectl.recordings import recording, writing
from numakin.kubectl.recordings.replaying import learned
from numakin.placement.traffic.graph import Flow
from numakin.placement.traffic.window import Window
from tests.numakin.kubectl.asking import Told, ask

PAIRS = 6
GIB = 1 << 30
TALK = "tcp", 1 << 24, 20_000, True


def pod(name: str, at: int, cpu: str = "2", **annotations: str) -> dict[str, Any]:
    """One of a pair; a secret is in its environment, and must not be in the file."""
    container = {
        "name": "main",
        "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}},
        "env": [{"name": "KEY", "value": "secret"}],
    }
    metadata = {
        "name": name, "namespace": "shop", "uid": name, "creationTimestamp": f"2026-01-01T00:00:{at:02}Z",
        "annotations": {"group.numakin.io": "auto", "other": "secret"} | annotations, "labels": {"secret": "secret"},
    }  # fmt: skip
    return {
        "metadata": metadata,
        "spec": {"containers": [container], "nodeName": "node-1"},
        "status": {"phase": "Running"},
    }


def node(name: str = "node-1", numa_nodes: int = 2, cpus: int = 16) -> dict[str, Any]:
    return {
        "node": name,
        "numa_nodes": [
            {"id": number, "cpus": f"{number * cpus}-{(number + 1) * cpus - 1}", "memory": 64 * GIB,
             "distances": [10 if number == other else 20 for other in range(numa_nodes)]}
            for number in range(numa_nodes)
        ],
    }  # fmt: skip


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Pairs of a client and a server on a machine with two NUMA nodes that are just large enough: every client was on
    NUMA node 0, every server on 1.
    """
    pods = [
        pod(f"{kind}-{number}", 2 * number + (kind == "server"))
        for number in range(PAIRS)
        for kind in ("client", "server")
    ]
    places = {each["metadata"]["uid"]: "0" if each["metadata"]["name"].startswith("client") else "1" for each in pods}
    flows = tuple(
        Flow(f"client-{number}", f"server-{number}", "tcp", 1 << 24, 20_000, by_server=True) for number in range(PAIRS)
    )
    lines = [writing.header(pods, [node()], places)]
    lines += [writing.line("node-1", Window(10.0, flows).to_json())] * 12
    path = tmp_path / "traffic.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def replayed(path: Path, *words: str) -> dict[str, dict[str, Any]]:
    answer = ask("replay", str(path), "-o", "json", *words)
    assert answer.code == 0, answer.err
    return {way["name"]: way for way in answer.json["ways"]}


def test_what_was_and_what_might_have_been_stand_side_by_side(recorded):
    ways = replayed(recorded)
    assert ways["as recorded"]["numa"] == 0
    assert ways["as recorded"]["node"] == pytest.approx(1)
    assert ways["numakin, knowing it"]["numa"] == pytest.approx(1)
    assert ways["numakin, knowing it"]["placed"] == 2 * PAIRS


def test_moves_bring_together_what_was_apart(recorded):
    ways = replayed(recorded)
    assert ways["as recorded, then moves"]["numa"] > 0.5
    assert ways["as recorded, then moves"]["moved"] >= 2


def test_a_pod_that_must_not_move_stays(recorded):
    first, *windows = recorded.read_text().splitlines()
    received = json.loads(first)
    for each in received["pods"]:
        each["metadata"]["annotations"]["move.numakin.io"] = "never"
    recorded.write_text("\n".join([json.dumps(received), *windows]))
    assert "as recorded, then moves" not in replayed(recorded)


def test_another_machine_is_another_story(recorded):
    ways = replayed(recorded, "--machine", "1x64")
    assert "as recorded" not in ways
    assert ways["numakin, new to it"]["numa"] == pytest.approx(1)
    assert replayed(recorded, "--machine", "4x2", "--nodes", "2")["numakin, knowing it"]["placed"] == 8


def test_another_policy_may_leave_pods_without_a_place(recorded):
    assert replayed(recorded, "--policy", "single-numa-node", "--machine", "4x1")["numakin, new to it"]["placed"] == 0


def test_nodes_of_which_less_was_recorded_are_no_older(tmp_path):
    """All were recorded until the same moment."""
    weights = {}
    for number in (1, 64):
        lines = [writing.header([pod(name, 0) for name in "abcd"], [node(), node("node-2")], {})]
        for name, flow, windows in (("node-1", Flow("a", "b", *TALK), 1), ("node-2", Flow("c", "d", *TALK), number)):
            lines += [writing.line(name, Window(10.0, (flow,)).to_json())] * windows
        path = tmp_path / f"{number}.jsonl"
        path.write_text("\n".join(lines))
        _, pairs = learned(recording.read(path))
        weights[number] = pairs["a", "b"]
    assert weights[64] == pytest.approx(weights[1])


def test_what_katalyst_says_of_a_pod_is_kept():
    told = {"katalyst.kubewharf.io/qos_level": "dedicated_cores"}
    header = writing.header([pod("a", 0, **told)], [node()], {})
    (only,) = json.loads(header)["pods"]
    assert only["metadata"]["annotations"] == {"group.numakin.io": "auto"} | told


def test_nothing_secret_is_in_the_file(recorded):
    assert "secret" not in recorded.read_text()


def test_people_see_a_table(recorded):
    answer = ask("replay", str(recorded))
    assert answer.lines[0].split() == [
        "PLACED",
        "BY",
        "INSIDE",
        "ONE",
        "NUMA",
        "NODE",
        "INSIDE",
        "ONE",
        "NODE",
        "PLACED",
        "MOVED",
    ]
    assert any(line.startswith("lowest NUMA node that fits") for line in answer.lines)


WRONG = {
    "nothing": ("", "line 1: not what"),
    "another file": ("{}", "'numakin_recording' is missing"),
    "another version": ('{"numakin_recording": 7}', "version 7; this program reads version 1"),
    "no JSON": ("hello", "line 1: not what"),
    "a pod without containers": (
        json.dumps({"numakin_recording": 1, "pods": [7], "nodes": [], "places": {}}),
        "line 1",
    ),
    "a window that is none": (
        '{"numakin_recording": 1, "pods": [], "nodes": [], "places": {}}\n{"node": "a"}',
        "line 2: not what",
    ),
    "half a window": (
        '{"numakin_recording": 1, "pods": [], "nodes": [], "places": {}}\n{"node": "a", "window": {"seconds": 1}}',
        "line 2: not what `kubectl numakin record` writes: not a recorded window",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_is_no_recording_costs_one_line(tmp_path, case):
    text, why = WRONG[case]
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    answer = ask("replay", str(path))
    assert answer.code == 2, answer.err
    (line,) = answer.err.splitlines()
    assert line.startswith(f"kubectl numakin: {path}")
    assert why in line


def test_a_recording_without_a_machine_takes_one_by_hand(tmp_path):
    path = tmp_path / "traffic.jsonl"
    path.write_text(writing.header([pod("a", 0)], [], {}) + "\n")
    for words in ((), ("--machine", "2x16")):
        answer = ask("replay", str(path), *words)
        assert (answer.code, answer.err) == (
            2,
            f"kubectl numakin: {path}: it has no machine: give --machine and --nodes\n",
        )
    assert replayed(path, "--machine", "2x16", "--nodes", "1")["numakin, new to it"]["placed"] == 1


@pytest.mark.parametrize(("words", "why"), [
    (("/no/file",), "/no/file: No such file or directory"),
    (("x", "--machine", "big"), "'big' is not allowed; allowed: NUMA nodes x CPUs"),
    (("x", "--machine", "65x1"), "up to 64x256"),
    (("x", "--nodes", "0"), "'0' is not allowed"),
    (("x", "--policy", "strict"), "invalid choice: 'strict'"),
])  # fmt: skip
def test_each_wrong_use_costs_one_line(words, why):
    received: Told = ask("replay", *words)
    assert received.code == 2
    assert why in received.err
    assert len(received.err.splitlines()) == 1
