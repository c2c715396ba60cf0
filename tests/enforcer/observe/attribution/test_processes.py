"""What /proc shows of a container: its cgroup, and whether its network is the node's own, where nothing else says so."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from enforcer.machine.mounts import CgroupMounts
from enforcer.observe.attribution.processes import TakenOver, cgroups_of, find_container, is_of
from lab.standins.patience import until


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Processes 1 and 7 in the node's network namespace, 8 in one of its own: an inode is all that is looked at."""
    for pid in (1, 7, 8):
        (tmp_path / str(pid) / "ns").mkdir(parents=True)
        (tmp_path / str(pid) / "cgroup").write_text("0::/pod/c\n")
    for pid in (1, 8):
        (tmp_path / str(pid) / "ns/net").touch()
    os.link(tmp_path / "1/ns/net", tmp_path / "7/ns/net")
    return tmp_path


@pytest.mark.parametrize(
    ("pid", "told", "result"),
    [
        (7, None, True),
        (8, None, False),
        (7, False, False),
        (8, True, True),
    ],
    ids=["it is the node's own", "it is its own", "the spec says no", "the spec says yes"],
)
def test_a_network_namespace_that_is_the_nodes_own_decides_where_nothing_else_does(
    proc: Path, pid: int, *, told: bool | None, result: bool
) -> None:
    found = find_container("c", "p", pid, host_network=told, mounts=CgroupMounts(None, {}), proc=proc)
    assert found.host_network is result
    assert bool(found.namespace) is not result


def test_who_may_not_look_takes_a_pod_for_one_with_a_network_of_its_own(proc: Path) -> None:
    (proc / "1/ns/net").unlink()
    assert not find_container("c", "p", 7, host_network=None, mounts=CgroupMounts(None, {}), proc=proc).host_network


@pytest.mark.parametrize("name", [b"\xff", b"a\rb", b"a\x1c0::/pod/another", b"a\xc2\x850::/pod/another"])
def test_a_cgroup_that_a_container_has_made_may_have_any_name(proc: Path, name: bytes) -> None:
    """And leads to no other pod's."""
    root = proc / "cgroup"
    (root / "pod/another").mkdir(parents=True)
    own = Path(os.fsdecode(bytes(root / "pod/c") + b"/" + name))
    own.mkdir(parents=True)
    (proc / "7/cgroup").write_bytes(b"0::/pod/c/" + name + b"\n")
    found = find_container("c", "p", 7, mounts=CgroupMounts(root, {}), proc=proc)
    assert own.stat().st_ino in found.cgroup_ids
    assert (root / "pod/another").stat().st_ino not in found.cgroup_ids


CHURN = """
import os, sys
while True:
    for change in os.mkdir, os.rmdir:
        for name in "abcdefgh":
            change(f"{sys.argv[1]}/{name}")
"""


def test_a_container_whose_own_cgroups_come_and_go_is_there_all_the_time(proc: Path) -> None:
    """As with systemd in it: it counted as ended where one had gone while all were read."""
    pod = proc / "cgroup/pod/c"
    (pod / "stays").mkdir(parents=True)
    staying = {pod.stat().st_ino, (pod / "stays").stat().st_ino}
    with subprocess.Popen([sys.executable, "-c", CHURN, str(pod)]) as churn:
        try:
            until(lambda: len([*pod.iterdir()]) > 1, "it changes")
            for _ in range(2000):
                found = find_container("c", "p", 7, mounts=CgroupMounts(proc / "cgroup", {}), proc=proc)
                assert found.cgroup_ids >= staying
        finally:
            churn.kill()


@pytest.mark.parametrize(
    ("cgroups_path", "of_it"),
    [
        ("/kubepods/pod1/c1", True),
        ("/kubepods/pod2/c2", False),
        ("/kubepods/pod1/c2", True),
        ("/c1", True),
        ("/c2", False),
        ("kubepods-pod1.slice:cri-containerd:c1", False),
        ("", True),
    ],
    ids=[
        "its own",
        "another pod's",
        "its pod's sandbox",
        "its own, in no pod's",
        "another's, in no pod's",
        "by the systemd driver",
        "none is named",
    ],
)
@pytest.mark.parametrize("below", ["", "/init.scope"])
@pytest.mark.parametrize("above", ["", "/../..", "/docker/node"])
def test_a_process_is_a_containers_by_the_pods_cgroup_that_the_runtime_names(
    proc: Path, cgroups_path: str, above: str, below: str, *, of_it: bool
) -> None:
    (proc / "7/cgroup").write_text(f"3:cpuset:/\n0::{above}/kubepods/pod1/c1{below}\n")
    assert is_of(cgroups_of(7, proc), cgroups_path) is of_it


def test_a_scope_of_the_systemd_driver_and_cgroup_v1_count_likewise(proc: Path) -> None:
    path = "/kubepods.slice/kubepods-pod1.slice/cri-containerd-c1.scope"
    (proc / "7/cgroup").write_text(f"3:cpuset:{path}\n0::/system.slice/containerd.service\n")
    assert is_of(cgroups_of(7, proc), "kubepods-pod1.slice:cri-containerd:c1")


def test_a_process_that_takes_over_the_id_while_it_is_looked_at_is_not_taken_for_the_containers(proc: Path) -> None:
    namespace, root, told = proc / "8/ns/net", proc / "cgroup", proc / "8/cgroup"
    inode = namespace.stat().st_ino
    for folder in ("pod1/c1", "pod2/c2"):
        (root / folder).mkdir(parents=True)
    told.unlink()
    os.mkfifo(told)

    def taken_over() -> None:
        """As soon as somebody looks at the cgroups."""
        with told.open("w") as looking:
            namespace.rename(proc / "before")
            namespace.touch()
            told.unlink()
            told.write_text("0::/pod2/c2\n")
            looking.write("0::/pod1/c1\n")

    process = threading.Thread(target=taken_over)
    process.start()
    found = find_container("c1", "pod1", 8, cgroups_path="/pod1/c1", mounts=CgroupMounts(root, {}), proc=proc)
    process.join()
    assert found.cgroup_ids == {(root / "pod1/c1").stat().st_ino}
    assert found.namespace == inode


def test_of_another_pods_process_nothing_is_taken(proc: Path) -> None:
    (proc / "7/cgroup").write_text("0::/pod2/c2\n")
    with pytest.raises(TakenOver):
        find_container("c1", "pod1", 7, cgroups_path="/pod1/c1", mounts=CgroupMounts(None, {}), proc=proc)
