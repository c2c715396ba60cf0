"""What the described machines are written as is what other programs take for a machine, too."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from enforcer.machine.sysfs import read_machine
from lab.standins.machines import MACHINES, write_procfs, write_sysfs
from lab.standins.machines.__main__ import main
from lab.standins.machines.write import mask
from numakin.placement.model.cpuset import CpuSet

needs_lscpu = pytest.mark.skipif(shutil.which("lscpu") is None, reason="lscpu (util-linux) is not installed")


@needs_lscpu
@pytest.mark.parametrize("name", [name for name, first in MACHINES.items() if first.numa])
def test_lscpu_sees_the_same_numa_nodes(name: str, tmp_path: Path):
    first = MACHINES[name]
    write_sysfs(first, tmp_path / "sys")
    write_procfs(first, tmp_path / "proc")
    assert _lscpu(tmp_path) == {
        cpu: (node.id, tuple(first.machine.core_of(cpu))) for node in first.machine.numa_nodes for cpu in node.cpus
    }


def test_the_command_writes_a_machine_that_reads_back(tmp_path: Path, capsys):
    main(["qemu-4n", str(tmp_path)])
    assert capsys.readouterr().out == f"--sysfs {tmp_path / 'sys'}\n"
    assert read_machine(tmp_path / "sys", "qemu-4n") == MACHINES["qemu-4n"].machine


def test_the_command_lists_every_machine_by_name(capsys):
    main(["list"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(MACHINES)


def test_the_command_without_a_folder_says_so(capsys):
    with pytest.raises(SystemExit):
        main(["qemu-4n"])
    assert "FOLDER is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cpus", "text"),
    [
        ("", "00000000"),
        ("0", "00000001"),
        ("0-31", "ffffffff"),
        ("32", "00000001,00000000"),
        ("1,64", "00000001,00000000,00000002"),
    ],
)
def test_masks_are_written_as_the_kernel_writes_them(cpus, text):
    assert mask(CpuSet.parse(cpus)) == text


def _lscpu(sysroot: Path) -> dict[int, tuple[int, tuple[int, ...]]]:
    """CPU -> its NUMA node, and the CPUs that lscpu gives the same core."""
    command = ["lscpu", "--sysroot", str(sysroot), "--json", "--online", "--extended=CPU,NODE,CORE"]
    table = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["cpus"]
    rows = [(int(row["cpu"]), int(row["node"]), int(row["core"])) for row in table]
    return {cpu: (node, tuple(other for other, _, same in rows if same == core)) for cpu, node, core in rows}
