"""The capabilities that the DaemonSet names are enough for a real kernel, and none of them is for nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from enforcer.machine.cgroup import CgroupTree
from lab.standins.patience import PATIENCE_S
from tests.manifests.capabilities import NUMBERS, ROOT, bounding, only, works


def with_only(capabilities: set[str]) -> dict[str, str]:
    """What works with these capabilities alone."""
    return works(*only(capabilities))


@pytest.mark.bpf
def test_the_named_capabilities_can_do_what_root_can(named, as_root):
    assert with_only(named) == as_root


@pytest.mark.bpf
@pytest.mark.parametrize(
    ("without", "lost"),
    [
        ("PERFMON", "socket_tracepoints"),
        ("NET_ADMIN", "cgroup_skb"),
        ("SYS_PTRACE", "namespaces"),
        ("BPF", "cgroup_skb"),
    ],
)
def test_each_of_them_is_needed(named, as_root, without, lost):
    if as_root[lost] != "works":
        pytest.skip(f"the kernel refuses: {as_root[lost]}")
    assert with_only(named - {without})[lost] != "works"


def away(*commands: str) -> list[str]:
    """Runs a command in a mount namespace of its own after these of the shell, with an empty folder to work in."""
    script = "; ".join(["set -e", "mount --make-rprivate /", *commands, 'exec "$@"'])
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


@pytest.mark.bpf
@pytest.mark.parametrize(
    ("without", "lost"),
    [
        pytest.param(["unshare", "--pid", "--fork", "--mount-proc"], "namespaces", id="hostPID"),
        pytest.param(away("mount -t tmpfs tmpfs /sys/fs/cgroup"), "cgroup_skb", id="/sys/fs/cgroup"),
    ],
)
def test_each_of_the_pod_s_own_is_needed(named, as_root, without, lost):
    if as_root[lost] != "works":
        pytest.skip(f"the kernel refuses: {as_root[lost]}")
    assert works(*without, *only(named))[lost] != "works"


@pytest.mark.bpf
def test_no_folder_is_needed_to_write_into(named, as_root):
    read_only = "mount --rbind {0} {0}; mount -o remount,bind,ro {0}"  # with what is in it: this checkout may be
    nowhere = away(*map(read_only.format, ("/tmp", "/var/tmp", "/dev/shm")), "cd /proc")
    assert works(*nowhere, *only(named)) == as_root


RAISES = "from resource import *; setrlimit(RLIMIT_MEMLOCK, (RLIM_INFINITY, RLIM_INFINITY))"
"""As the loader does, for kernels before Linux 5.11."""


@pytest.mark.parametrize(("without", "raised"), [(set(), True), ({"SYS_RESOURCE"}, False)])
def test_the_memory_lock_limit_is_raised_by_that_power_alone(named, without, raised):
    if not bounding() >> NUMBERS["SYS_RESOURCE"] & 1:
        pytest.skip("this machine's root has no SYS_RESOURCE")
    limited = ["prlimit", "--memlock=65536:65536", *only(named - without), sys.executable, "-c", RAISES]
    assert (subprocess.run(limited, capture_output=True, check=False).returncode == 0) == raised


@pytest.fixture
def container_cgroup():
    """As a runtime makes one: root's, with all that its parent has."""
    tree = CgroupTree.discover()
    path = f"/numakin-powers-{os.getpid()}"
    folder = tree.controllers.get("cpuset", tree.unified) / path[1:]
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        if not (folder / "cpuset.cpus").exists():
            pytest.skip("the cpuset controller is not on here")
        yield path
    finally:
        folder.rmdir()


def test_bypass_mode_needs_no_capability_to_write_a_cpuset_and_to_speak_to_roots_socket(container_cgroup):
    command = [*only(set()), sys.executable, "-m", "tests.manifests.bypassing", container_cgroup]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert answer.stdout.split() == ["cpuset", "socket"], answer.stderr


def kubelets_policy(folder: Path, *command: str) -> str:
    """The CPU manager's policy of a kubelet with all of root's powers and this folder, as this command finds it; in a
    procfs of that process alone: beside others of these tests a real kubelet runs.
    """
    words = ["kubelet", "-c", "import time; print(flush=True); time.sleep(600)", f"--root-dir={folder}"]
    procfs = folder / "proc"
    looks = f"from pathlib import Path; from enforcer.machine.kubelet import managers; print(managers(Path('{procfs}')).cpu)"
    with subprocess.Popen(words, executable=sys.executable, stdout=subprocess.PIPE) as kubelet:
        assert kubelet.stdout is not None
        kubelet.stdout.readline()
        procfs.mkdir()
        (procfs / str(kubelet.pid)).symlink_to(f"/proc/{kubelet.pid}")
        answer = subprocess.run(
            [*command, sys.executable, "-c", looks], cwd=ROOT, capture_output=True, text=True, check=False
        )
        kubelet.kill()
    return answer.stdout.strip()


def test_they_are_enough_to_see_the_kubelets_policy_without_its_folder(named, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    (tmp_path / "cpu_manager_state").write_text('{"policyName": "static"}')
    (tmp_path / "cpu_manager_state").chmod(0o600)
    assert kubelets_policy(tmp_path, *only(named)) == "static"
