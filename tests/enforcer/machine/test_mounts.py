"""Cgroup hierarchies are found as mounted: version 1, version 2, and both at once."""

from pathlib import Path

import pytest

from enforcer.machine.mounts import CgroupMounts, cgroup_mounts, mounted

V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate 0 0\n"
V1 = (
    "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n"
    "cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n"
    "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n"
    "cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0\n"
)
TOP = Path("/sys/fs/cgroup")
V1_CONTROLLERS = {
    "cpu": TOP / "cpu,cpuacct",
    "cpuacct": TOP / "cpu,cpuacct",
    "cpuset": TOP / "cpuset",
    "memory": TOP / "memory",
}


@pytest.mark.parametrize(
    ("text", "mounts"),
    [
        (V2, CgroupMounts(TOP)),
        (V1, CgroupMounts(None, V1_CONTROLLERS)),
        (V1 + V2.replace("/cgroup ", "/cgroup/unified "), CgroupMounts(TOP / "unified", V1_CONTROLLERS)),
        (V2 + V2.replace("/sys/", "/run/containerd/x/sys/"), CgroupMounts(TOP)),
        (V2.replace("/sys/fs/cgroup", r"/host\040root/cgroup"), CgroupMounts(Path("/host root/cgroup"))),
        ("proc /proc proc rw 0 0\ngarbage\n\n", CgroupMounts()),
        ("", CgroupMounts()),
    ],
    ids=["v2", "v1", "hybrid", "bound again in a container", "a blank in the path", "no cgroups", "empty"],
)
def test_mounts_are_read(text, mounts):
    assert cgroup_mounts(text) == mounts


@pytest.mark.parametrize("name", [b"\xff", b"a\rb", b"a\xc2\x85b"])
def test_what_users_have_mounted_may_have_any_name(tmp_path: Path, name: bytes) -> None:
    """As a program that the runtime has launched sees it: all mounts of the node."""
    (tmp_path / "mounts").write_bytes(b"sshfs /home/u/" + name + b" fuse.sshfs rw,user_id=1000 0 0\n" + V2.encode())
    assert mounted(tmp_path / "mounts") == CgroupMounts(TOP)
