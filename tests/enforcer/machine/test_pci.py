"""The PCI devices of a machine, as its sysfs has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from enforcer.machine.pci import Device, devices
from tests.enforcer.machine.pci_tree import BRIDGE, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "sys")


def test_a_card_is_named_by_its_interfaces_and_driver(machine: Machine):
    machine.add("0000:81:00.0", "0x020000", "net/eth0", "infiniband/mlx5_0", driver="mlx5_core")
    assert devices(machine.root) == (
        Device("0000:81:00.0", "network", "mlx5_core", ("eth0", "mlx5_0"), 1),
    )  # fmt: skip


@pytest.mark.parametrize(("code", "interface", "kind", "name"), [
    ("0x010802", "nvme/nvme0", "storage", "nvme0"),
    ("0x018000", "virtio1/block/vda", "storage", "vda"),
    ("0x020000", "virtio2/net/eth0", "network", "eth0"),
    ("0x030000", "drm/card1", "graphics", "card1"),
    ("0x120000", "accel/accel0", "accelerator", "accel0"),
])  # fmt: skip
def test_kinds_follow_the_pci_class(machine: Machine, code: str, interface: str, kind: str, name: str):
    machine.add("0000:81:00.0", code, interface)
    (device,) = devices(machine.root)
    assert (device.kind, device.names, device.driver) == (kind, (name,), "")


def test_bridges_and_usb_are_left_out(machine: Machine):
    machine.add("0000:81:00.0", "0x060400")
    machine.add("0000:81:00.1", "0x0c0330")
    assert devices(machine.root) == ()


def test_virtual_functions_are_left_out(machine: Machine):
    card = machine.add("0000:81:00.0", "0x020000", "net/eth0")
    (machine.add("0000:81:00.2", "0x020000", "net/eth1") / "physfn").symlink_to(card)
    assert [device.names for device in devices(machine.root)] == [("eth0",)]


def test_the_numa_node_is_the_bridges_where_the_function_does_not_know(machine: Machine):
    machine.add("0000:81:00.0", "0x020000", numa_node=-1)
    (device,) = devices(machine.root)
    assert device.numa_node == 1


def test_without_a_numa_node_it_is_on_none(tmp_path: Path):
    machine = Machine(tmp_path)
    machine.add("0000:81:00.0", "0x020000", numa_node=-1)
    (tmp_path / BRIDGE / "numa_node").write_text("-1\n")
    (device,) = devices(tmp_path)
    assert device.numa_node is None


def test_what_can_not_be_read_costs_only_itself(machine: Machine):
    machine.add("0000:81:00.0", "no number")
    (machine.root / "bus/pci/devices/0000:82:00.0").symlink_to("nowhere")
    machine.add("0000:83:00.0", "0x020000", "net/eth0")
    assert [device.names for device in devices(machine.root)] == [("eth0",)]


def test_a_name_of_any_bytes_can_be_sent(machine: Machine):
    card = machine.add("0000:81:00.0", "0x020000")
    (card / "net" / os.fsdecode(b"eth\xff")).mkdir(parents=True)
    (device,) = devices(machine.root)
    (name,) = device.names
    assert name.encode("utf-8").startswith(b"eth")


def test_a_machine_without_pci_has_none(tmp_path: Path):
    assert devices(tmp_path) == ()


def test_the_machine_that_this_runs_on_can_be_read():
    for device in devices(Path("/sys")):
        assert (Path("/sys/bus/pci/devices") / device.address).exists()
        assert device.numa_node is None or (Path("/sys/devices/system/node") / f"node{device.numa_node}").exists()
