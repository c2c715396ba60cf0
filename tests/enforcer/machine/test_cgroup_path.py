"""A runtime's cgroups path names a folder, in the cgroupfs and in the systemd form."""

import pytest

from enforcer.machine.cgroup_path import UNIFIED, folder_below_mount, path_of_process, paths_of_process
from enforcer.machine.errors import BadCgroupsPath

POD = "kubepods-burstable-pod0f0b6d7e_8a7b_4e3b_9a53_0c6d9a7d2f11.slice"
SLICES = f"kubepods.slice/kubepods-burstable.slice/{POD}"


@pytest.mark.parametrize(
    ("cgroups_path", "folder"),
    [
        ("/kubepods/burstable/pod0f0b6d7e/4c1f", "kubepods/burstable/pod0f0b6d7e/4c1f"),
        ("/k8s.io/4c1f", "k8s.io/4c1f"),
        ("k8s.io/4c1f", "k8s.io/4c1f"),
        ("/odd:name:here/4c1f", "odd:name:here/4c1f"),
        ("/", ""),
        (f"{POD}:cri-containerd:4c1f", f"{SLICES}/cri-containerd-4c1f.scope"),
        (f"{POD}:crio:4c1f", f"{SLICES}/crio-4c1f.scope"),
        ("kubepods-podaa.slice:cri-containerd:4c1f", "kubepods.slice/kubepods-podaa.slice/cri-containerd-4c1f.scope"),
        (":cri-containerd:4c1f", "system.slice/cri-containerd-4c1f.scope"),
        ("-.slice:docker:4c1f", "docker-4c1f.scope"),
        ("user.slice::4c1f", "user.slice/4c1f.scope"),
        ("machine.slice:libpod:inner.slice", "machine.slice/inner.slice"),
    ],
)
def test_a_path_names_the_folder_where_the_runtime_put_the_container(cgroups_path, folder):
    assert folder_below_mount(cgroups_path) == folder


@pytest.mark.parametrize(
    ("cgroups_path", "message"),
    [
        ("", "cgroups path '': not a path of 1..4096 characters"),
        ("/../../etc", "cgroups path '/../../etc': leads upwards"),
        ("a.slice:x:", "cgroups path 'a.slice:x:': names no unit"),
        ("kubepods:x:y", "cgroups path 'kubepods:x:y': 'kubepods' is not a slice's name"),
        ("a--b.slice:x:y", "cgroups path 'a--b.slice:x:y': 'a--b.slice' is not a slice's name"),
        ("-a.slice:x:y", "cgroups path '-a.slice:x:y': '-a.slice' is not a slice's name"),
        (".slice:x:y", "cgroups path '.slice:x:y': '.slice' is not a slice's name"),
        ("a\0b", "cgroups path 'a\\x00b': not a path of 1..4096 characters"),
        ("/" + "x" * 5000, f"cgroups path '/{'x' * 76}...': not a path of 1..4096 characters"),
    ],
)
def test_a_bad_path_is_refused_word_for_word(cgroups_path, message):
    with pytest.raises(BadCgroupsPath) as refusal:
        folder_below_mount(cgroups_path)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("0::/kubepods/podx/c1\n", "/kubepods/podx/c1"),
        ("9:name=systemd:/\n4:memory:/m\n3:cpuset:/kubepods/c1\n0::/unified\n", "/kubepods/c1"),
        ("5:cpu,cpuset:/both\n", "/both"),
        ("0::/odd:name/c1\n", "/odd:name/c1"),
        ("4:memory:/m\n", ""),
        ("", ""),
    ],
)
def test_a_processs_own_file_names_its_cgroup(text, path):
    assert path_of_process(text) == path


def test_a_process_has_a_path_by_each_controller():
    text = "5:cpu,cpuacct:/a\n3:cpuset:/kubepods/c1\n0::/unified\n"
    paths = {"cpu": "/a", "cpuacct": "/a", "cpuset": "/kubepods/c1", UNIFIED: "/unified"}
    assert paths_of_process(text) == paths
