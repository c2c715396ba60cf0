"""Containers that run though the runtime never told of them, by the folders that their cgroups have."""

from pathlib import Path

import pytest

from enforcer.machine.cgroup import CgroupTree
from enforcer.observer.census import MOST_REMEMBERED, Census
from numakin.wire import local_pb2 as local
from tests import supervised

PAUSE, APP, PROXY, OTHER = (f"{number:064x}" for number in range(1, 5))


class Node:
    """A kubelet's cgroups with one pod, of whose container the runtime has told."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.reported: list[list[str]] = []
        self.census = Census(CgroupTree(unified=top), self.reported.append, supervised.threads())
        self.run("kubepods/burstable/podold", PAUSE, APP)
        self.tell("/kubepods/burstable/podold/" + APP)

    def run(self, pod: str, *containers: str, processes: str = "77\n") -> None:
        for container in containers:
            folder = self.top / pod / container
            folder.mkdir(parents=True)
            (folder / "cgroup.procs").write_text(processes)

    def tell(self, *paths: str, gone: tuple[str, ...] = ()) -> None:
        received = [local.LocalContainer(id=path.rpartition("/")[2], cgroups_path=path) for path in paths]
        self.census.received(local.Containers(containers=received, gone=gone))

    def look(self) -> list[list[str]]:
        """What is reported by two looks."""
        self.census.poll()
        self.census.poll()
        return self.reported


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_pod_has_one_folder_more_than_the_runtime_told_of(node: Node) -> None:
    assert node.look() == []
    assert node.census.untold == 0


def test_what_runs_is_never_forgotten_however_many_come_and_go(node: Node) -> None:
    for number in range(MOST_REMEMBERED + 1):
        path = f"/kubepods/burstable/podshort/{number + 10:064x}"
        node.tell(path)
        node.tell(gone=(path.rpartition("/")[2],))
    node.run("kubepods/burstable/podold", OTHER)
    assert node.look() == [[PAUSE, OTHER]], "the pause container, which no runtime tells of, and one more"


def test_containers_that_were_never_told_of_are_reported_once_when_they_are_still_there_at_the_next_look(
    node: Node,
) -> None:
    node.run("kubepods/burstable/podnew", OTHER, PROXY)
    node.census.poll()
    assert node.reported == [], "they may just be starting"
    node.census.poll()
    assert node.reported == [[PROXY, OTHER]]
    assert (node.look(), node.census.untold) == ([[PROXY, OTHER]], 2)


def test_once_they_are_told_of_all_is_well(node: Node) -> None:
    node.run("kubepods/burstable/podnew", OTHER, PROXY)
    node.look()
    node.tell("/kubepods/burstable/podnew/" + PROXY)
    node.look()
    assert node.census.untold == 0


def test_a_sandbox_whose_images_are_still_looked_for_is_no_proof(node: Node) -> None:
    node.run("kubepods/burstable/podnew", OTHER)
    assert node.look() == []


def test_a_container_whose_end_was_told_may_take_its_time(node: Node) -> None:
    node.tell(gone=(APP,))
    assert node.look() == []


def test_folders_without_processes_are_leftovers(node: Node) -> None:
    node.run("kubepods/burstable/podnew", OTHER, PROXY, processes="")
    assert node.look() == []


def test_a_container_that_has_its_processes_further_below_runs(node: Node) -> None:
    node.run("kubepods/burstable/podnew", OTHER, PROXY, processes="")
    node.run(f"kubepods/burstable/podnew/{OTHER}", "init.scope")
    node.run(f"kubepods/burstable/podnew/{PROXY}", "init.scope")
    assert node.look() == [[PROXY, OTHER]]


def test_the_systemd_drivers_folders_are_known_too(tmp_path: Path) -> None:
    node = Node(tmp_path)
    slices = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice"
    node.run(slices.format("old"), f"cri-containerd-{OTHER}.scope")
    node.census.received(
        local.Containers(
            containers=[
                local.LocalContainer(id=OTHER, cgroups_path=f"kubepods-burstable-podold.slice:cri-containerd:{OTHER}")
            ]
        )
    )
    new = [f"{number:064x}" for number in (10, 11)]
    node.run(slices.format("new"), *(f"cri-containerd-{entry}.scope" for entry in new))
    assert node.look() == [new]


def test_a_tree_that_goes_away_meanwhile_is_no_fault(node: Node) -> None:
    node.tell("/kubepods/burstable/podgone/" + PROXY, "../up", "")
    assert node.look() == []
