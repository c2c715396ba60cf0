"""Any machine that is written reads back, and any content of a file is a machine or an error of ours."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enforcer.machine.errors import MachineError
from enforcer.machine.sysfs import read_machine
from lab.standins.machines import MACHINES, Description, write_sysfs
from lab.standins.machines.in_memory import in_memory
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine, NumaNode
from tests import examples
from tests.enforcer.machine.sysfs_files import CPU, NODE


@st.composite
def descriptions(draw: st.DrawFn) -> Description:
    """Small machines of any shape: gaps between ids, NUMA nodes of nothing, offline CPUs, cores of any width, isolated
    CPUs, and memory of movable pages alone.
    """
    ids = sorted(draw(st.sets(st.integers(0, 300), min_size=1, max_size=6)))
    order = draw(st.permutations(range(draw(st.integers(1, 24)))))
    width = draw(st.integers(1, 4))
    cores = [CpuSet.of(order[first : first + width]) for first in range(0, len(order), width)]
    home = [draw(st.sampled_from(ids)) for _ in cores]
    far = st.integers(1, 255)
    isolated = CpuSet.of(draw(st.sets(st.sampled_from(order), max_size=len(order) - 1)))
    memory = {entry: draw(st.integers(0, 1 << 30)) * 1024 for entry in ids}
    withheld = draw(st.sets(st.sampled_from(ids[1:]))) if ids[1:] and memory[ids[0]] else set()
    nodes = tuple(
        NumaNode(
            id=entry,
            cpus=(every := CpuSet.of(cpu for core, at in zip(cores, home, strict=True) if at == entry for cpu in core))
            - isolated,
            memory=memory[entry],
            distances={other: draw(far) for other in ids},
            isolated=every & isolated,
            withheld=entry in withheld and bool(memory[entry]),
        )
        for entry in ids
    )
    ascending = tuple(sorted(cores, key=lambda core: core.lowest))
    whole = CpuSet.of(order)
    machine = Machine(nodes, cores=ascending, caches=ascending, sockets=(whole,), name="drawn")
    offline = CpuSet.of(range(24, 24 + draw(st.integers(0, 3))))
    return Description("", machine, "", offline=offline, old_kernel=draw(st.booleans()))


@settings(max_examples=examples.of(30), deadline=None)
@given(descriptions())
def test_any_machine_that_is_written_reads_back(description: Description):
    with tempfile.TemporaryDirectory(prefix="numakin.", dir=in_memory()) as folder:
        write_sysfs(description, Path(folder))
        assert read_machine(Path(folder), "drawn") == description.machine


FILES_THAT_MATTER = (
    f"{CPU}/online",
    f"{CPU}/cpu0/topology/core_cpus_list",
    f"{CPU}/cpu0/topology/package_cpus_list",
    f"{CPU}/cpu0/cache/index2/level",
    f"{CPU}/cpu0/cache/index2/shared_cpu_list",
    f"{CPU}/isolated",
    f"{NODE}/online",
    f"{NODE}/has_normal_memory",
    f"{NODE}/node1/cpulist",
    f"{NODE}/node1/distance",
    f"{NODE}/node1/meminfo",
)


@settings(max_examples=examples.of(100), deadline=None)
@given(st.sampled_from(FILES_THAT_MATTER), st.one_of(st.binary(max_size=40), st.from_regex(rb"[-0-9,:/ kB]{1,20}")))
def test_whatever_a_file_holds_there_is_a_machine_or_an_error_of_ours(spoilable: Path, file: str, content: bytes):
    good = (spoilable / file).read_bytes()
    (spoilable / file).write_bytes(content)
    try:
        outcome: Machine | str = read_machine(spoilable)
    except MachineError as error:
        outcome = str(error)
    finally:
        (spoilable / file).write_bytes(good)
    assert isinstance(outcome, Machine) or str(spoilable) in outcome


@pytest.fixture(scope="module")
def spoilable(tmp_path_factory) -> Path:
    """A sysfs of its own for a test that puts each file back."""
    folder = tmp_path_factory.mktemp("spoilable")
    write_sysfs(MACHINES["qemu-4n"], folder)
    return folder
