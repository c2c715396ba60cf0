"""Which pods are there, by their sandboxes and their cgroups."""

from __future__ import annotations

from enforcer.hook.facts.sandboxes import AT_ONCE, Sandboxes
from numakin.wire import nri_pb2 as nri


def sandbox(number: int) -> nri.PodSandbox:
    return nri.PodSandbox(
        id=f"sandbox-{number}",
        uid=f"uid-{number}",
        name=f"web-{number}",
        namespace="shop",
        annotations={"big": "x" * 99},
    )


def test_cgroups_are_looked_for_a_few_at_a_time_and_each_in_its_turn() -> None:
    looked_for, there = [], {"uid-0", "uid-20", "uid-39"}
    sandboxes = Sandboxes(lambda _path, uid: looked_for.append(uid) or uid in there)
    for number in range(40):
        sandboxes.appeared(sandbox(number), f"/kubepods/{number}")
    for _ in range(3):
        before = len(looked_for)
        sandboxes.note_some_cgroups()
        assert len(looked_for) - before <= AT_ONCE
    there.clear()
    gone = sandboxes.gone([f"uid-{number}" for number in range(40)])
    assert {pod.uid for pod in gone} == {"uid-0", "uid-20", "uid-39"}, "only what was there can be missing"


def test_of_a_sandbox_no_more_is_kept_than_its_names() -> None:
    sandboxes = Sandboxes(lambda _path, _uid: False)
    sandboxes.appeared(sandbox(1))
    sandboxes.deleted("uid-1")
    assert sandboxes.gone(["uid-1"]) == [nri.PodSandbox(id="sandbox-1", uid="uid-1", name="web-1", namespace="shop")]
