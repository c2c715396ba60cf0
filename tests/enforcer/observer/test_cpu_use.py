"""What workloads use of the CPU, by the files of their pods' cgroups, and when that is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from enforcer.machine.cgroup import CgroupTree
from enforcer.observer.cpu_use import AGAIN_S, CpuUse
from extender.traffic.uses import FRESH_S
from numakin.placement.traffic.cpu_use import ENOUGH
from numakin.process.threads import Threads
from numakin.wire import local_pb2 as local

WEB, DB = "shop/Deployment/web", "shop/StatefulSet/db"
WINDOW_S = 10.0


class Node:
    """Pods whose containers use what they are told to; `told` has each message of what is known."""

    def __init__(self, top: Path, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._top, self._now, self._micros = top, 0.0, dict[str, float]()
        self.told: list[dict[str, int]] = []
        tell = lambda uses: self.told.append(dict(uses))  # noqa: E731
        threads = Threads(lambda _failure: None)
        self.use = CpuUse(CgroupTree(unified=top), tell, window_s, threads, clock=lambda: self._now)

    def runs(self, pod: str, workload: str, *containers: str, opted_in: bool = True) -> None:
        for name in containers or ("main",):
            self._micros[f"{pod}-{name}"] = 0.0
        rows = [
            local.LocalContainer(
                id=f"{pod}-{name}", pod=pod, workload=workload, opted_in=opted_in, cgroups_path=f"/{pod}-{name}"
            )
            for name in containers or ("main",)
        ]
        self.use.received(local.Containers(containers=rows))

    def windows(self, count: int, **milli: float) -> None:
        """milli: by container."""
        for _ in range(count):
            self._now += self._window_s
            for container, used in milli.items():
                name = container.replace("_", "-")
                self._micros[name] += used / 1000 * self._window_s * 1e6
                folder = self._top / name
                folder.mkdir(exist_ok=True)
                (folder / "cpu.stat").write_text(f"usage_usec {round(self._micros[name])}\n")
            self.use.sample()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_what_a_pods_containers_use_together_is_told_of_its_workload(node: Node) -> None:
    node.runs("a", WEB, "main", "proxy")
    node.windows(ENOUGH + 1, a_main=1500, a_proxy=500)
    (told,) = node.told
    assert told == {WEB: pytest.approx(2000, rel=0.06)}


def test_it_is_told_again_only_when_it_is_news_or_for_an_extender_that_began_anew(node: Node) -> None:
    node.runs("a", WEB)
    node.windows(ENOUGH + 1, a_main=500)
    node.windows(int(AGAIN_S / WINDOW_S) - 1, a_main=520)
    assert len(node.told) == 1
    node.windows(1, a_main=520)
    assert len(node.told) == 2
    node.windows(20, a_main=3000)
    assert node.told[-1][WEB] == pytest.approx(3000, rel=0.06)


def test_an_extender_hears_of_it_before_it_forgets_however_long_a_window_is(tmp_path: Path) -> None:
    node = Node(tmp_path, window_s=120.0)
    node.runs("a", WEB)
    node.windows(ENOUGH + 1, a_main=500)
    node.windows(int(FRESH_S / 120.0), a_main=500)
    assert len(node.told) > 1


def test_a_hook_that_comes_anew_is_told_at_once(node: Node) -> None:
    node.runs("a", WEB)
    node.windows(ENOUGH + 1, a_main=500)
    node.use.hook_came()
    node.windows(1, a_main=500)
    assert len(node.told) == 2


def test_replicas_teach_together_and_pods_that_have_not_opted_in_are_not_looked_at(node: Node) -> None:
    for pod in "ab":
        node.runs(pod, WEB)
    node.runs("c", DB, opted_in=False)
    node.windows(ENOUGH + 1, a_main=100, b_main=300, c_main=4000)
    assert node.told == [{WEB: pytest.approx(300, rel=0.06)}]


def test_replicas_that_start_together_are_not_known_by_their_start(node: Node) -> None:
    for pod in "abc":
        node.runs(pod, WEB)
    node.windows(3, a_main=4000, b_main=4000, c_main=4000)
    node.windows(ENOUGH, a_main=100, b_main=100, c_main=100)
    assert node.told == [{WEB: pytest.approx(100, rel=0.06)}]


def test_a_window_in_which_a_container_came_or_went_counts_for_nothing(node: Node) -> None:
    """Of a restarted container nobody knows what it used before."""
    node.runs("a", WEB, "main", "proxy")
    node.windows(ENOUGH + 2, a_main=100)  # no such cgroup of the proxy's yet
    assert node.told == []
