"""The NUMA node of a device is found from its kind and numbers, as sysfs links them."""

from pathlib import Path

import pytest

from enforcer.machine.devices import numa_node_of

PCI = "devices/pci0000:80/0000:80:01.0/0000:81:00.0"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """A PCI bridge on NUMA node 1, with what is below it."""
    root = tmp_path / "sys"
    _file(root / "devices/pci0000:80/0000:80:01.0/numa_node", "1")
    _file(root / PCI / "numa_node", "1")
    return root


def _file(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content + "\n")


def _device(root: Path, kind: str, numbers: str, place: str) -> None:
    """As the kernel links it: dev/char/226:0 -> ../../devices/.../card0."""
    (root / place).mkdir(parents=True)
    (root / "dev" / kind).mkdir(parents=True, exist_ok=True)
    (root / "dev" / kind / numbers).symlink_to(Path("../..") / place)


def test_a_class_device_is_where_its_pci_function_is(sysfs: Path):
    _device(sysfs, "char", "226:0", f"{PCI}/drm/card0")
    assert numa_node_of(sysfs, "c", 226, 0) == 1


def test_a_block_device_is_not_mistaken_for_a_char_device(sysfs: Path):
    _device(sysfs, "block", "259:0", f"{PCI}/nvme/nvme0/nvme0n1")
    assert numa_node_of(sysfs, "b", 259, 0) == 1
    assert numa_node_of(sysfs, "c", 259, 0) is None


def test_a_function_that_does_not_know_asks_its_bridge(sysfs: Path):
    _file(sysfs / PCI / "numa_node", "-1")
    _device(sysfs, "char", "231:192", f"{PCI}/infiniband_verbs/uverbs0")
    assert numa_node_of(sysfs, "c", 231, 192) == 1


def test_a_virtual_device_has_no_numa_node(sysfs: Path):
    _device(sysfs, "char", "10:200", "devices/virtual/misc/tun")
    assert numa_node_of(sysfs, "c", 10, 200) is None


@pytest.mark.parametrize(("kind", "major", "minor"), [("c", 1, 99), ("p", 226, 0), ("", 226, 0), ("c", -1, -1)])
def test_what_sysfs_does_not_know_has_no_numa_node(sysfs: Path, kind: str, major: int, minor: int):
    _device(sysfs, "char", "226:0", f"{PCI}/drm/card0")
    assert numa_node_of(sysfs, kind, major, minor) is None


def test_a_link_that_leads_out_of_the_root_is_not_followed(sysfs: Path, tmp_path: Path):
    _file(tmp_path / "elsewhere/device/numa_node", "0")
    (sysfs / "dev/char").mkdir(parents=True)
    (sysfs / "dev/char/9:9").symlink_to(tmp_path / "elsewhere/device")
    assert numa_node_of(sysfs, "c", 9, 9) is None


def test_a_vfio_group_is_where_its_members_are(sysfs: Path):
    _device(sysfs, "char", "243:7", "devices/virtual/vfio/17")
    _pci(sysfs)
    _group_member(sysfs, "17", PCI)
    assert numa_node_of(sysfs, "c", 243, 7) == 1


def test_a_vfio_group_on_several_numa_nodes_has_none(sysfs: Path):
    _device(sysfs, "char", "243:7", "devices/virtual/vfio/17")
    other = "devices/pci0000:00/0000:00:02.0"
    _file(sysfs / other / "numa_node", "0")
    _pci(sysfs)
    (sysfs / "bus/pci/devices/0000:00:02.0").symlink_to(Path("../../..") / other)
    for member in (PCI, other):
        _group_member(sysfs, "17", member)
    assert numa_node_of(sysfs, "c", 243, 7) is None


def test_an_nvidia_gpu_is_found_by_its_drivers_own_file(sysfs: Path, tmp_path: Path):
    _pci(sysfs)
    proc = tmp_path / "proc"
    for minor, address in enumerate(["0000:3b:00.0", "0000:81:00.0"]):
        _file(proc / f"driver/nvidia/gpus/{address}/information", f"Model: \t\t NVIDIA A100\nDevice Minor: \t {minor}")
    assert numa_node_of(sysfs, "c", 195, 1, proc) == 1
    assert numa_node_of(sysfs, "c", 195, 0, proc) is None
    assert numa_node_of(sysfs, "c", 195, 255, proc) is None


def test_this_machines_null_device_has_no_numa_node():
    assert numa_node_of(Path("/sys"), "c", 1, 3) is None


def _pci(root: Path) -> None:
    (root / "bus/pci/devices").mkdir(parents=True)
    (root / "bus/pci/devices/0000:81:00.0").symlink_to(Path("../../..") / PCI)


def _group_member(root: Path, group: str, device: str) -> None:
    folder = root / "kernel/iommu_groups" / group / "devices"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / Path(device).name).symlink_to(Path("../../../..") / device)
