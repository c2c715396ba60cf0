"""The kubelet's policies are found wherever its root folder is, with no more than the enforcer may do anyway."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from enforcer.cli.doctor import examine
from enforcer.machine.kubelet import Managers, managers
from enforcer.settings.config import Config


class Node:
    """A /proc of plain files, with what each process sees of the node's file system."""

    def __init__(self, folder: Path) -> None:
        self.procfs = folder / "proc"
        self.process(1, "/sbin/init")

    def process(self, pid: int, *words: str) -> Path:
        folder = self.procfs / str(pid)
        (folder / "root").mkdir(parents=True)
        (folder / "cmdline").write_text("".join(f"{text}\0" for text in words))
        return folder / "root"

    @staticmethod
    def state(folder: Path, cpu: str = "none", memory: str = "None") -> None:
        """As a kubelet v1.34 writes it."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpu_manager_state").write_text(
            json.dumps({"policyName": cpu, "defaultCpuSet": "", "checksum": 1353318690})
        )
        (folder / "memory_manager_state").write_text(json.dumps({"policyName": memory, "checksum": 4046314163}))

    def findings(self) -> list[tuple[str, str]]:
        config = Config(procfs=str(self.procfs), podresources_socket="off")
        return [(entry.grade, entry.text.split(":")[0]) for entry in examine(config) if entry.topic == "kubelet"]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize(
    ("words", "root_dir"),
    [
        (["/usr/bin/kubelet", "--config=/etc/kubelet.yaml"], "var/lib/kubelet"),
        (["kubelet", "--root-dir=/data/kubelet"], "data/kubelet"),
        (["kubelet", "--root-dir", "/data/kubelet"], "data/kubelet"),
        (["/usr/local/bin/k3s", "agent", "--kubelet-arg=root-dir=/data/kubelet"], "data/kubelet"),
        (["/hyperkube", "kubelet", "--v=2"], "var/lib/kubelet"),
    ],
)
def test_the_root_folder_is_the_kubelets_own(node: Node, words, root_dir) -> None:
    node.process(7, "sleep", "kubelet")
    root = node.process(30, *words)
    node.state(root / root_dir, "static")
    assert managers(node.procfs) == Managers("static", "None", root / root_dir)


def test_one_that_is_not_seen_is_looked_for_in_the_nodes_file_system(node: Node) -> None:
    node.state(node.procfs / "1/root/var/lib/kubelet", "static")
    assert managers(node.procfs) is not None


@pytest.mark.parametrize(
    ("cpu", "memory", "findings"),
    [
        ("none", "None", [("good", "cpuManagerPolicy is none")]),
        ("static", "None", [("bad", "cpuManagerPolicy is static")]),
        (
            "none",
            "Static",
            [
                ("good", "cpuManagerPolicy is none"),
                (
                    "note",
                    "memoryManagerPolicy is Static",
                ),
            ],
        ),
    ],
)
def test_the_doctor_says_who_else_sets_cpusets(node: Node, cpu, memory, findings) -> None:
    node.state(node.procfs / "1/root/var/lib/kubelet", cpu, memory)
    assert node.findings() == findings


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"policyName": 3}', "[" * 100_000, '{"policyName": "none\\u001b]0;all is well\\u0007"}'],
    ids=["nothing", "half of it", "a list", "a number", "lists in lists", "what would write at a terminal"],
)
def test_what_is_no_state_is_none(node: Node, text) -> None:
    folder = node.procfs / "1/root/var/lib/kubelet"
    folder.mkdir(parents=True)
    (folder / "cpu_manager_state").write_text(text)
    assert managers(node.procfs) is None
    assert node.findings() == [("note", "its state can't be read from here")]


def test_a_pipe_in_its_place_keeps_nobody_waiting(node: Node) -> None:
    folder = node.procfs / "1/root/var/lib/kubelet"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "cpu_manager_state")
    assert managers(node.procfs) is None


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """The root folder of a process that calls itself a kubelet, and a procfs without this machine's own kubelets."""
    root = tmp_path / "root-dir"
    words = ["kubelet", "-c", "import time; print(flush=True); time.sleep(600)", f"--root-dir={root}"]
    process = subprocess.Popen(words, executable=sys.executable, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / str(process.pid)).symlink_to(f"/proc/{process.pid}")
    yield root, tmp_path / "proc"
    process.kill()
    process.communicate()


def test_a_process_of_this_machine_is_found(running: tuple[Path, Path]) -> None:
    root, procfs = running
    Node.state(root, "static")
    kubelet = managers(procfs)
    assert kubelet is not None
    assert (kubelet.cpu, kubelet.where.resolve()) == ("static", root.resolve())
