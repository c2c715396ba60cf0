"""What of the machine is given to nobody, and what of it is in doubt: seen by whoever looks, and no reason to stop."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from enforcer.cli import doctor
from enforcer.cli.status import _why
from enforcer.hook.agent import Agent
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.hardware.node import read_node
from enforcer.settings.config import Config, ConfigError
from lab.standins.cri.cgroups import Cgroups
from lab.standins.machines import MACHINES, write_sysfs
from lab.standins.patience import until
from tests.enforcer.hook.world import container, member
from tests.enforcer.running import Enforcer, cpus

GPUS = "power9-six-gpus"
CACHE = "devices/system/cpu/cpu0/cache/index2/shared_cpu_list"
IN_DOUBT = f"{CACHE}: '': leaves out CPU 0 itself"


MOVABLE = "hold movable pages alone (GPUs' memory, CXL): no member is bound to them; --memory-tiers allows what is not a GPU's"


def config(tmp_path: Path, name: str = GPUS, **options: str) -> Config:
    """Of a machine whose CPUs 8-11 are isolated, and whose CPU 0 has no cache."""
    write_sysfs(MACHINES[name], tmp_path / "sys")
    (tmp_path / "sys/devices/system/cpu/isolated").write_text("8-11\n")
    (tmp_path / "sys" / CACHE).write_text("\n")
    return Config(sysfs=str(tmp_path / "sys"), **options)


def test_doctor_names_it(tmp_path: Path) -> None:
    notes = [entry.text for entry in doctor._numa(config(tmp_path)) if entry.grade == "note"]
    assert notes == [
        f"in doubt: {tmp_path}/sys/{IN_DOUBT}",
        "CPUs 8-11 are isolated by the kernel: no member is given them",
        f"NUMA nodes 250-255 {MOVABLE}",
    ]


def test_the_hook_works_on_and_status_names_it(enforcer: Enforcer, runtime) -> None:
    there = enforcer.sysfs = enforcer.folder / "sys"
    write_sysfs(MACHINES["xeon-8380"], there)
    (there / "devices/system/cpu/nohz_full").write_text("2-3,42-43\n")
    (there / CACHE).write_text("\n")
    enforcer.start()
    runtime.wait_for_plugin()
    made = runtime.run_container(runtime.run_pod("m", annotations={"group.numakin.io": "web"}), "app", cpu_request=2)
    assert str(cpus(runtime, made)) == "0-1,4-39,80-119"
    until((enforcer.run_dir / "hook.sock").exists, "the hook's socket")
    received = enforcer.status()["machine"]
    assert received == {"isolated_cpus": "2-3,42-43", "withheld_mems": "", "doubts": [f"{there}/{IN_DOUBT}"]}
    assert _why(enforcer.status())[:2] == [
        f"a fact about the machine is in doubt: {there}/{IN_DOUBT}",
        "isolated CPUs, given to no member: 2-3,42-43",
    ]


def test_a_tier_is_allowed_by_its_number(tmp_path: Path) -> None:
    node = read_node(config(tmp_path, memory_tiers="252"))
    assert str(node.machine.mems) == "0,8,252"


def test_a_tier_may_be_named_before_its_memory_is_there(tmp_path: Path) -> None:
    """The kernel has such a NUMA node online, with nothing in it."""
    named = config(tmp_path, memory_tiers="252")
    nodes = tmp_path / "sys/devices/system/node"
    meminfo, listed = nodes / "node252/meminfo", nodes / "has_memory"
    full, everywhere = meminfo.read_text(), listed.read_text()
    meminfo.write_text("Node 252 MemTotal:       0 kB\nNode 252 MemFree:        0 kB\n")
    listed.write_text("0,8,250-251,253-255\n")
    assert str(read_node(named).machine.mems) == "0,8"
    meminfo.write_text(full)
    listed.write_text(everywhere)
    assert str(read_node(named).machine.mems) == "0,8,252"


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("memory_tiers", "8,251", "memory-tiers: NUMA node 8 is not of memory alone; of that kind: 250-255"),
        ("memory_tiers", "3", "memory-tiers: NUMA node 3 is not of memory alone; of that kind: 250-255"),
        ("memory_tiers", "x", "memory-tiers: 'x' is not a list of ids: 'x' is neither an id nor a range"),
        ("reserved_cpus", "900", "reserved-cpus: CPUs 900 are not online; online: 0-175"),
        ("reserved_cpus", "0-175", "reserved-cpus: 0-175 is every CPU of the machine that containers are given"),
    ],
)
def test_options_that_do_not_suit_the_machine_are_refused_in_a_line(
    tmp_path: Path, option: str, value: str, says: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        read_node(config(tmp_path, **{option: value}))
    assert str(refused.value) == says


def test_isolated_cpus_may_be_reserved_too(tmp_path: Path) -> None:
    assert str(read_node(config(tmp_path, reserved_cpus="0,8-11")).reserved) == "0"


@pytest.mark.parametrize("name", ["kubepods", "kubepods.slice"])
@pytest.mark.parametrize("version", [1, 2])
def test_cpus_that_the_cgroup_of_all_pods_lacks_are_named_until_they_are_reserved(
    tmp_path: Path, name: str, version: int
) -> None:
    """As an operator has AllowedCPUs= for it, or version 1 leaves out CPUs that went offline for a while."""
    kind, options, file = [
        ("cgroup", "rw,cpuset", "cpuset.effective_cpus"),
        ("cgroup2", "rw", "cpuset.cpus.effective"),
    ][version - 1]
    folder = tmp_path / "cgroup" / name
    folder.mkdir(parents=True)
    (folder.parent / file).write_text("0-175\n")
    (folder / file).write_text("0-7,12-99\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/mounts").write_text(f"{kind} {tmp_path}/cgroup {kind} {options} 0 0\n")
    withheld = config(tmp_path, procfs=str(tmp_path / "proc"))
    says = f"{folder} gives pods CPUs 0-7,12-99 alone: no member can have the others; name them by --reserved-cpus: "
    assert read_node(withheld).doubts[1:] == (f"{says}100-175",)
    assert f"in doubt: {says}100-175" in [entry.text for entry in doctor._numa(withheld)]
    assert str(read_node(withheld).machine.cpus) == "0-7,12-99", (
        "a container with others would not start, or have fewer"
    )
    assert len(read_node(replace(withheld, reserved_cpus="100-175")).doubts) == 1
    (folder.parent / file).write_text("0-15\n")
    assert len(read_node(withheld).doubts) == 1, "the cgroups are of another machine than is described"


@pytest.mark.parametrize("name", ["altix-64n", "altix-17n", "superdome-flex-8s-snc2"])
def test_doctor_has_no_doubts_about_a_sound_machine(tmp_path: Path, name: str) -> None:
    write_sysfs(MACHINES[name], tmp_path / "sys")
    sound = Config(sysfs=str(tmp_path / "sys"))
    assert not any("in doubt" in entry.text for entry in doctor._numa(sound))
    assert json.loads(sound.to_json())["memory_tiers"] == ""


def test_a_member_with_a_device_whose_numa_node_can_not_be_read_is_placed_all_the_same(tmp_path: Path) -> None:
    """As where the device is just being taken out."""
    node = read_node(config(tmp_path))
    (tmp_path / "sys/devices/gone/numa_node").mkdir(parents=True)
    (tmp_path / "sys/dev/char").mkdir(parents=True)
    (tmp_path / "sys/dev/char/10:200").symlink_to("../../devices/gone")
    made = container("a")
    made.linux.devices.add(path="/dev/gone", type="c", major=10, minor=200)
    adjust, _ = Agent(node, Nominations()).create_container(member("a"), made)
    assert adjust is not None
    assert adjust.linux.resources.cpu.cpus


def test_memory_that_the_cgroup_of_all_pods_lacks_is_nobodys(tmp_path: Path) -> None:
    """As version 1 leaves out memory that came later."""
    played = Cgroups(tmp_path, "0-175", "0,8,250-255")
    (played.root / "kubepods").mkdir()
    (played.root / "kubepods/cpuset.mems.effective").write_text("0,250-255\n")
    machine = read_node(config(tmp_path, procfs=str(played.procfs))).machine
    assert (str(machine.mems), str(machine.all_mems)) == ("0", "0,8,250-255")


def test_memory_policies_are_asked_for_where_the_kernel_knows_them(tmp_path: Path) -> None:
    played = Cgroups(tmp_path, "0-175", "0,8")
    (played.procfs / "sys/kernel").mkdir(parents=True)
    for release, known in (("5.10.0", False), ("6.1.0", True)):
        (played.procfs / "sys/kernel/osrelease").write_text(f"{release}\n")
        assert read_node(config(tmp_path, procfs=str(played.procfs))).memory_policies == known
