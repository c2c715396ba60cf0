"""Cpusets of cgroups are read and written, version 1 and 2; the kernel's own rules are told before they are broken."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from enforcer.machine.cgroup import CgroupTree, Cpuset
from enforcer.machine.errors import BadCgroupsPath, BadFile, CgroupRefused, NotThere
from numakin.placement.model.cpuset import CpuSet, NumaSet

POD = "/kubepods/podx"
CONTAINER = f"{POD}/c1"


def _cpuset(*lists: str) -> Cpuset:
    cpus, mems, effective_cpus, effective_mems = lists
    return Cpuset(CpuSet.parse(cpus), NumaSet.parse(mems), CpuSet.parse(effective_cpus), NumaSet.parse(effective_mems))


def _files(folder: Path, **content: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


@pytest.fixture
def unified(tmp_path: Path) -> CgroupTree:
    """Version 2, the cpuset controller on down to the pods: containers have no cpuset files of their own yet."""
    top = tmp_path / "cgroup"
    for folder in (top, top / "kubepods"):
        _files(folder, cpuset__cpus__effective="0-7", cpuset__mems__effective="0-3")
    _files(top / "kubepods/podx", cpuset__cpus="", cpuset__mems="")
    _files(top / "kubepods/podx", cpuset__cpus__effective="0-7", cpuset__mems__effective="0-1")
    (top / "kubepods/podx/c1").mkdir()
    return _discovered(tmp_path, f"cgroup2 {top} cgroup2 rw 0 0\n")


def _discovered(folder: Path, mounts: str) -> CgroupTree:
    (folder / "proc").mkdir()
    (folder / "proc/mounts").write_text(mounts)
    return CgroupTree.discover(folder / "proc")


def _with_cpuset(tree: CgroupTree) -> Path:
    folder = tree.folder(CONTAINER)
    assert folder is not None
    _files(folder, cpuset__cpus="", cpuset__mems="")
    _files(folder, cpuset__cpus__effective="0-7", cpuset__mems__effective="0-1")
    return folder


class TestVersion2:
    def test_a_container_without_the_controller_has_its_pods_effective_cpuset(self, unified):
        assert unified.version() == 2
        assert unified.cpuset(CONTAINER) == _cpuset("", "", "0-7", "0-1")

    def test_a_pinned_container_reads_as_pinned(self, unified):
        folder = _with_cpuset(unified)
        _files(folder, cpuset__cpus="2-3", cpuset__mems="1")
        _files(folder, cpuset__cpus__effective="2-3", cpuset__mems__effective="1")
        assert unified.cpuset(CONTAINER) == _cpuset("2-3", "1", "2-3", "1")

    def test_a_container_that_is_gone_has_no_cpuset(self, unified):
        assert unified.cpuset("/kubepods/podx/c2") is None

    def test_a_pin_is_written_in_the_kernels_list_format(self, unified):
        folder = _with_cpuset(unified)
        unified.set_cpuset(CONTAINER, CpuSet.parse("2,3,6"), NumaSet.parse("1"))
        assert (folder / "cpuset.cpus").read_text() == "2-3,6\n"
        assert (folder / "cpuset.mems").read_text() == "1\n"

    def test_given_back_it_has_all_that_its_pod_has(self, unified):
        folder = _with_cpuset(unified)
        unified.set_cpuset(CONTAINER, CpuSet.parse("2"), NumaSet.parse("1"))
        unified.open_cpuset(CONTAINER, mems=False)
        assert [(folder / file).read_text() for file in ("cpuset.cpus", "cpuset.mems")] == ["0-7\n", "1\n"]
        unified.open_cpuset(CONTAINER)
        assert (folder / "cpuset.mems").read_text() == "0-1\n"

    def test_without_the_controller_a_pin_is_refused_by_name(self, unified):
        with pytest.raises(CgroupRefused, match=r"cpuset\.cpus: the cpuset controller is not on for this cgroup"):
            unified.set_cpuset(CONTAINER, CpuSet.parse("1"))

    def test_what_is_empty_is_left_as_it_is(self, unified):
        folder = _with_cpuset(unified)
        _files(folder, cpuset__mems="0")
        unified.set_cpuset(CONTAINER, cpus=CpuSet.parse("1"))
        assert (folder / "cpuset.mems").read_text() == "0\n"

    def test_how_long_a_container_waited_for_a_cpu_is_in_seconds_where_the_kernel_counts_it(self, unified):
        folder = _with_cpuset(unified)
        assert unified.cpu_waited(CONTAINER) is None
        line = "avg10=1.50 avg60=0.00 avg300=0.00 total"
        (folder / "cpu.pressure").write_text(f"some {line}=2500000\nfull {line}=1\n")
        assert unified.cpu_waited(CONTAINER) == 2.5
        assert replace(unified, controllers={"cpu": folder}).cpu_waited(CONTAINER) is None, (
            "version 1 does not count it"
        )

    def test_a_systemd_path_finds_its_nested_slices(self, unified):
        folder = unified.unified / "kubepods.slice/kubepods-pody.slice/cri-containerd-c9.scope"
        _files(folder, cpuset__cpus="5", cpuset__mems="0", cpuset__cpus__effective="5", cpuset__mems__effective="0")
        assert unified.cpuset("kubepods-pody.slice:cri-containerd:c9") == _cpuset("5", "0", "5", "0")


@pytest.mark.parametrize(
    ("cgroups_path", "cpus", "mems", "error", "message"),
    [
        (
            CONTAINER,
            "6-9",
            "",
            CgroupRefused,
            "{top}/kubepods/podx/c1/cpuset.cpus: 8-9 of 6-9 is not in 0-7, all that its parent has",
        ),
        (
            CONTAINER,
            "1",
            "2",
            CgroupRefused,
            "{top}/kubepods/podx/c1/cpuset.mems: 2 of 2 is not in 0-1, all that its parent has",
        ),
        ("/gone", "1", "", NotThere, "{top}/gone: there is no such cgroup"),
        ("/", "1", "", CgroupRefused, "{top}: the root cgroup always has every CPU and all memory"),
        ("/../x", "1", "", BadCgroupsPath, "cgroups path '/../x': leads upwards"),
    ],
)
def test_a_cpuset_that_cannot_be_is_refused_word_for_word(unified, cgroups_path, cpus, mems, error, message):
    _with_cpuset(unified)
    with pytest.raises(error) as refusal:
        unified.set_cpuset(cgroups_path, CpuSet.parse(cpus), NumaSet.parse(mems))
    assert str(refusal.value) == message.format(top=unified.unified)


def test_a_refused_pin_leaves_both_files_as_they_were(unified):
    folder = _with_cpuset(unified)
    with pytest.raises(CgroupRefused):
        unified.set_cpuset(CONTAINER, CpuSet.parse("9"), NumaSet.parse("1"))
    assert (folder / "cpuset.mems").read_text() == "\n"


def test_mems_are_put_back_when_the_cpus_are_refused(unified):
    folder = _with_cpuset(unified)
    _files(folder, cpuset__mems="0-1")
    (folder / "cpuset.cpus").unlink()
    (folder / "cpuset.cpus").mkdir()
    with pytest.raises(CgroupRefused, match="the kernel refuses '1': Is a directory"):
        unified.set_cpuset(CONTAINER, CpuSet.parse("1"), NumaSet.parse("1"))
    assert (folder / "cpuset.mems").read_text() == "0-1\n"


def test_mems_that_were_the_parents_are_so_again_when_the_cpus_are_refused(unified):
    """By name, as the kernel takes no empty list while there are tasks."""
    folder = _with_cpuset(unified)
    (folder / "cpuset.cpus").unlink()
    (folder / "cpuset.cpus").mkdir()
    with pytest.raises(CgroupRefused):
        unified.set_cpuset(CONTAINER, CpuSet.parse("1"), NumaSet.parse("1"))
    assert (folder / "cpuset.mems").read_text() == "0-1\n"


def test_a_file_that_holds_no_cpuset_is_named(unified):
    folder = _with_cpuset(unified)
    _files(folder, cpuset__cpus="many")
    with pytest.raises(BadFile, match=f"{folder}/cpuset.cpus: .*'many' is neither an id nor a range"):
        unified.cpuset(CONTAINER)


def test_no_cpuset_hierarchy_at_all_is_refused_by_name(tmp_path: Path):
    with pytest.raises(NotThere, match="proc/mounts: no cgroup hierarchy with cpusets is mounted"):
        _discovered(tmp_path, "proc /proc proc rw 0 0\n")


def test_in_the_hybrid_the_cpuset_is_version_1s(tmp_path: Path):
    cpuset, memory, unified = tmp_path / "cpuset", tmp_path / "memory", tmp_path / "unified"
    _files(cpuset / "k8s.io/c1", cpuset__cpus="0-1", cpuset__mems="0")
    _files(cpuset / "k8s.io/c1", cpuset__effective_cpus="0-1", cpuset__effective_mems="0")
    _files(unified / "k8s.io/c1", cpuset__cpus="2-3")
    mounts = f"cgroup {cpuset} cgroup rw,cpuset 0 0\ncgroup {memory} cgroup rw,memory 0 0\ncgroup2 {unified} cgroup2 rw 0 0\n"
    tree = _discovered(tmp_path, mounts)
    assert tree.version() == 1
    assert tree.cpuset("/k8s.io/c1") == _cpuset("0-1", "0", "0-1", "0")


UID = "8f1c-77"
SYSTEMD = "kubepods-burstable-pod8f1c_77.slice:cri-containerd:c1"


class TestCrun:
    """It has a container's processes in a cgroup below the scope that systemd has, and sets both cpusets where it is told
    one.
    """

    PATH = "kubepods-podx.slice:crio:c1"

    @pytest.fixture
    def scope(self, tmp_path: Path) -> Path:
        """Of a container that was created with a cpuset."""
        scope = tmp_path / "cgroup/kubepods.slice/kubepods-podx.slice/crio-c1.scope"
        for folder in (tmp_path / "cgroup", *reversed(scope.parents[:2])):
            _files(folder, cpuset__cpus="", cpuset__mems="")
            _files(folder, cpuset__cpus__effective="0-7", cpuset__mems__effective="0-1")
        for folder in (scope, scope / "container"):
            _files(folder, cpuset__cpus="2-3", cpuset__mems="1")
            _files(folder, cpuset__cpus__effective="2-3", cpuset__mems__effective="1")
        return scope

    @pytest.fixture
    def tree(self, tmp_path: Path, scope: Path) -> CgroupTree:
        return _discovered(tmp_path, f"cgroup2 {scope.parents[2]} cgroup2 rw 0 0\n")

    def test_given_back_both_have_all_that_the_pod_has(self, tree, scope):
        tree.open_cpuset(self.PATH)
        for folder in (scope, scope / "container"):
            assert [(folder / file).read_text() for file in ("cpuset.cpus", "cpuset.mems")] == ["0-7\n", "0-1\n"]

    def test_a_pin_is_written_into_both(self, tree, scope):
        tree.set_cpuset(self.PATH, CpuSet.parse("4-7"))
        for folder in (scope, scope / "container"):
            assert [(folder / file).read_text() for file in ("cpuset.cpus", "cpuset.mems")] == ["4-7\n", "1\n"]

    def test_one_without_a_cpuset_of_its_own_is_left_so(self, tree, scope):
        _files(scope / "container", cpuset__cpus="", cpuset__mems="")
        tree.set_cpuset(self.PATH, CpuSet.parse("4-7"), NumaSet.parse("0"))
        assert [(scope / f"container/{file}").read_text() for file in ("cpuset.cpus", "cpuset.mems")] == ["\n", "\n"]

    @pytest.mark.parametrize(
        ("of_scope", "of_processes", "read"),
        [
            ("0-7", "2-3", "2-3"),
            ("2-3", "0-7", "2-3"),
            ("2-3", "", "2-3"),
            ("", "2-3", "2-3"),
            ("2-3", "4-5", "2-3"),
            ("", "", ""),
        ],
    )
    def test_what_the_processes_get_of_both_is_read(self, tree, scope, of_scope, of_processes, read):
        """Where both have nothing in common, the kernel gives them the scope's."""
        _files(scope, cpuset__cpus=of_scope)
        _files(scope / "container", cpuset__cpus=of_processes)
        cpuset = tree.cpuset(self.PATH)
        assert cpuset is not None
        assert cpuset.cpus == CpuSet.parse(read)

    def test_what_is_in_force_is_what_the_processes_get(self, tree, scope):
        _files(scope, cpuset__cpus__effective="0-7")
        cpuset = tree.cpuset(self.PATH)
        assert cpuset is not None
        assert cpuset.effective_cpus == CpuSet.parse("2-3")


class TestPodLimitsMemory:
    """The kubelet limits the memory of a pod's cgroup when every container of the pod has a limit."""

    @pytest.mark.parametrize(
        ("cgroups_path", "folder"),
        [
            ("/kubepods/burstable/pod8f1c-77/c1", "kubepods/burstable/pod8f1c-77"),
            ("/kubepods/pod8f1c-77/c1", "kubepods/pod8f1c-77"),
            (SYSTEMD, "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8f1c_77.slice"),
        ],
    )
    @pytest.mark.parametrize(("received", "limited"), [("max", False), ("8388608", True)])
    def test_version_2(self, tmp_path: Path, cgroups_path, folder, received, limited) -> None:
        _files(tmp_path / folder, memory__max=received)
        assert CgroupTree(unified=tmp_path).pod_limits_memory(cgroups_path, UID) is limited

    @pytest.mark.parametrize(("received", "limited"), [("9223372036854771712", False), ("8388608", True)])
    def test_version_1(self, tmp_path: Path, received, limited) -> None:
        (tmp_path / "kubepods/pod8f1c-77").mkdir(parents=True)
        (tmp_path / "kubepods/pod8f1c-77/memory.limit_in_bytes").write_text(received)
        tree = CgroupTree(controllers={"cpuset": tmp_path / "other", "memory": tmp_path})
        assert tree.pod_limits_memory("/kubepods/pod8f1c-77/c1", UID) is limited

    @pytest.mark.parametrize("cgroups_path", ["/k8s.io/c1", "/kubepods/podother/c1", "/kubepods/pod8f1c-77/c1"])
    def test_it_is_not_known_without_a_cgroup_of_the_pod(self, tmp_path: Path, cgroups_path) -> None:
        _files(tmp_path / "k8s.io", memory__max="8388608")
        _files(tmp_path / "kubepods/podother", memory__max="8388608")
        assert CgroupTree(unified=tmp_path).pod_limits_memory(cgroups_path, UID) is None


@pytest.mark.parametrize(
    ("cgroups_path", "folder"),
    [
        ("/kubepods/pod8f1c-77/c1", "kubepods/pod8f1c-77"),
        (
            "kubepods-burstable-pod8f1c_77.slice:cri-containerd:c1",
            "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8f1c_77.slice",
        ),
    ],
)
def test_a_pod_is_there_as_long_as_its_own_cgroup_is(tmp_path: Path, cgroups_path: str, folder: str) -> None:
    tree = CgroupTree(unified=tmp_path)
    assert not tree.has_pod(cgroups_path, UID)
    (tmp_path / folder).mkdir(parents=True)
    assert tree.has_pod(cgroups_path, UID)
    assert not tree.has_pod(cgroups_path, "another")


@pytest.fixture
def kernel_tree() -> CgroupTree:
    tree = CgroupTree.discover()
    if "cpuset" not in tree.controllers:
        pytest.skip("no version 1 cpuset hierarchy is mounted here")
    if os.geteuid() != 0:
        pytest.skip("only root may make cgroups")
    return tree


@pytest.fixture
def own_cgroup(kernel_tree: CgroupTree):
    """A cgroup of this test's own, with all CPUs and memory, and one below it."""
    path = f"/numakin-test-{os.getpid()}"
    parent = kernel_tree.controllers["cpuset"] / path[1:]
    child = parent / "c1"
    try:
        child.mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        root = kernel_tree.cpuset("/")
        kernel_tree.set_cpuset(path, root.effective_cpus, root.effective_mems)
        yield f"{path}/c1"
    finally:
        child.rmdir()
        parent.rmdir()


class TestThisKernel:
    def test_a_pin_holds_for_the_processes_in_the_cgroup(self, kernel_tree, own_cgroup):
        whole = kernel_tree.cpuset(_parent(own_cgroup))
        one_cpu, one_node = CpuSet.of([whole.cpus.lowest]), NumaSet.of([whole.mems.lowest])
        kernel_tree.set_cpuset(own_cgroup, one_cpu, one_node)
        assert kernel_tree.cpuset(own_cgroup) == Cpuset(one_cpu, one_node, one_cpu, one_node)
        assert _allowed_inside(kernel_tree.folder(own_cgroup)) == f"{one_cpu}"

    def test_given_back_it_has_what_its_parent_has(self, kernel_tree, own_cgroup):
        whole = kernel_tree.cpuset(_parent(own_cgroup))
        kernel_tree.set_cpuset(own_cgroup, CpuSet.of([whole.cpus.lowest]), whole.mems)
        kernel_tree.open_cpuset(own_cgroup)
        assert kernel_tree.cpuset(own_cgroup).cpus == whole.cpus

    def test_a_cpu_that_the_parent_has_not_is_refused(self, kernel_tree, own_cgroup):
        with pytest.raises(CgroupRefused, match="4000 of 4000 is not in"):
            kernel_tree.set_cpuset(own_cgroup, CpuSet.of([4000]))

    def test_a_parent_that_would_lose_a_childs_cpus_is_refused_by_the_kernel(self, kernel_tree, own_cgroup):
        whole = kernel_tree.cpuset(_parent(own_cgroup))
        if len(whole.cpus) < 2:
            pytest.skip("this machine has one CPU")
        kernel_tree.set_cpuset(own_cgroup, whole.cpus, whole.mems)
        with pytest.raises(CgroupRefused, match="the kernel refuses"):
            kernel_tree.set_cpuset(_parent(own_cgroup), CpuSet.of([whole.cpus.lowest]))

    def test_a_fresh_cgroup_of_version_1_has_nothing(self, kernel_tree, own_cgroup):
        assert kernel_tree.cpuset(own_cgroup) is not None
        assert not kernel_tree.cpuset(own_cgroup).cpus


def _allowed_inside(folder: Path) -> str:
    """The CPUs that a process in the cgroup may use, as the kernel tells it."""
    script = f"echo $$ > {folder}/cgroup.procs && grep Cpus_allowed_list /proc/self/status"
    shown = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True).stdout
    return shown.split(":")[1].strip()


def _parent(cgroups_path: str) -> str:
    return cgroups_path.rpartition("/")[0]
